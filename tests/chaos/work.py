"""Who keeps an installation busy: runs that somebody wants, and people and agents who decide about them."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from pml.processors.workflow import Session, evolve
from pml.schemas.codec import decode_event
from pml.schemas.commands import Command
from pml.schemas.errors import PMLError
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.client import IntentProducer
from pml.streams.connection import client_options
from pml.streams.log.reader import counted
from pml.streams.settings import Settings
from tests.chaos.journal import Journal
from tests.simulation.people import Decider
from tests.simulation.play import Submission, workflow_of
from tests.simulation.plays import Plot
from tests.simulation.settings import TENANTS
from tests.simulation.tools import Toolbox

# A real run waits for real roles; a tenth of them still end by their own time-out while a role is away.
PATIENCE = 2
WIDE, NARROW = Plot("wide"), Plot("narrow", narrow=True)
# Sessions that get another run now and then: the newest ones, and one that is old.
RECENT = 8
AGAIN_S = 0.5
LOOK_S = 0.4


def wanted_runs(seed: int, seconds: float, per_second: float, toolbox: Toolbox) -> list[Submission]:
    """The runs of a seed by when they are wanted; the tools that they need are added to the toolbox."""
    random = Random(f"{seed}/chaos")
    sessions: list[tuple[str, str, Plot]] = []
    found: list[Submission] = []
    at_s = 0.0
    while at_s < seconds:
        if not sessions or random.random() < 0.45:
            plot = random.choice([WIDE, WIDE, NARROW])
            sessions.append((random.choice(TENANTS), f"s{len(sessions)}", plot))
        tenant, session_id, plot = random.choice([*sessions[-RECENT:], random.choice(sessions)])
        source, workflow = workflow_of(f"{seed}/workflow/{len(found)}", plot, toolbox)
        workflow["options"]["timeout_s"] *= PATIENCE
        run_id = f"run_{session_id}_{len(found)}"
        found.append(Submission(at_s, tenant, session_id, run_id, workflow, None, source))
        at_s += random.expovariate(per_second)
    return found


class Watch:
    """The log as it grows: every session as its counted events fold, and which commands were answered."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.lives: dict[bytes, SimpleNamespace] = {}
        self.answered: set[str | None] = set()
        self.events = 0

    async def follow(self) -> None:
        """Read for ever; a broker that is away comes back."""
        topic = self._settings.topics.events
        partitions = [TopicPartition(topic, number) for number in range(SESSION_PARTITIONS)]
        options = {**client_options(self._settings), "auto_offset_reset": "earliest"}
        async with AIOKafkaConsumer(**options, enable_auto_commit=False) as consumer:
            consumer.assign(partitions)
            while True:
                with suppress(KafkaError):
                    for records in (await consumer.getmany(timeout_ms=300)).values():
                        for record in records:
                            self._take(record)

    def live(self) -> list[bytes]:
        """Sessions with a run that has not ended."""
        return [key for key, life in self.lives.items() if life.session.live]

    def _take(self, record: Any) -> None:
        if not counted(record) or record.key is None:
            return
        event = decode_event(record.value)
        known = self.lives.get(record.key)
        before: Session | None = known.session if known and event.seq else None
        self.lives[record.key] = SimpleNamespace(session=evolve(before, event))
        self.answered.add(event.command_id)
        self.events += 1


class Post:
    """Sends commands in order, each by the same id until Kafka has taken it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._waiting: deque[Command] = deque()
        self.sent: dict[str, Command] = {}
        self.counts: Counter[str] = Counter()

    def send(self, command: Command) -> None:
        """Have a command sent."""
        self._waiting.append(command)
        self.sent[command.command_id] = command
        self.counts[f"command: {command.type}"] += 1

    @property
    def asked(self) -> dict[str, str]:
        """The runs that were asked for, by their command."""
        starts = (command for command in self.sent.values() if command.type == "run.start")
        return {command.command_id: command.run_id or "" for command in starts}

    @property
    def idle(self) -> bool:
        """Whether Kafka has everything."""
        return not self._waiting

    async def deliver(self) -> None:
        """Send for ever."""
        while True:
            with suppress(PMLError, KafkaError):
                async with IntentProducer(self._settings) as producer:
                    await self._send_all(producer)
            self.counts["producer began again"] += 1
            await asyncio.sleep(AGAIN_S)

    async def _send_all(self, producer: IntentProducer) -> None:
        while True:
            while self._waiting:
                await producer.send(self._waiting[0])
                self._waiting.popleft()
            await asyncio.sleep(0.02)


class People(Decider):
    """The simulation's people, before a real installation."""

    def __init__(self, watch: Watch, post: Post, folder: Path, seed: int) -> None:
        stage: Any = SimpleNamespace(
            observer=watch, plot=WIDE, counts=post.counts, loop=SimpleNamespace(outside=_later)
        )
        super().__init__(stage, seed)
        self._scene, self._post = stage, post
        self._journal = Journal(folder / "journal.jsonl")

    async def attend(self) -> None:
        """Look at everything for ever."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_S)

    def _settle(self, key: bytes, run_id: str, task_id: str, call_id: str) -> None:
        """Look at the servers' own log first."""
        lines = [line for line in self._journal.lines() if line["call_id"] == call_id]
        ran = [SimpleNamespace(value=line["value"]) for line in lines if line["kind"] == "ran"]
        self._scene.world = SimpleNamespace(executions={call_id: ran})
        self._scene.reached = {call_id} if lines else set()
        super()._settle(key, run_id, task_id, call_id)

    def _append(self, key: bytes, command: Command) -> None:
        self._post.send(command)


async def submit(wanted: list[Submission], post: Post) -> None:
    """Ask for each run when its time has come."""
    began = asyncio.get_running_loop().time()
    for item in wanted:
        await asyncio.sleep(max(0.0, began + item.at_s - asyncio.get_running_loop().time()))
        post.counts[f"workflow: {item.source}"] += 1
        post.send(item.command)


def open_work(watch: Watch, post: Post) -> list[str]:
    """Commands that nobody answered, and sessions with a run that has not ended."""
    unanswered = [command_id for command_id in post.sent if command_id not in watch.answered]
    return [*unanswered, *(key.decode() for key in watch.live())]


def _later(delay_s: float, act: Callable[..., None], *words: Any) -> None:
    asyncio.get_running_loop().call_later(delay_s, act, *words)
