"""PML's side: submits workflows, answers their decisions, and sees in the log what became of every call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition

from benchmarks.stack import beside_block
from pml.schemas.commands import RunContinue
from pml.schemas.errors import PMLError
from pml.schemas.events import (
    DecisionRequired,
    Event,
    RunAborted,
    RunCompleted,
    RunFailed,
    SpeculationEnded,
    SpeculationStarted,
    TaskCompleted,
)
from pml.schemas.times import from_rfc3339
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.client import IntentProducer, new_id
from pml.streams.connection import client_options
from pml.streams.log.reader import counted, counted_event, event_type
from pml.streams.settings import Settings
from pml.streams.sources import opened

# The default of a run's time-out.
END_TIMEOUT_S = 300
POLL_MS = 200
ENDS = frozenset({RunCompleted.TYPE, RunFailed.TYPE, RunAborted.TYPE})
SEEN = ENDS | {
    DecisionRequired.TYPE,
    SpeculationEnded.TYPE,
    SpeculationStarted.TYPE,
    TaskCompleted.TYPE,
}


class RunDidNotComplete(PMLError):
    """A run of tools that only sleep ended otherwise."""

    code = "RUN_DID_NOT_COMPLETE"


@dataclass(slots=True)
class Account:
    """What speculation did in the runs of one side.

    `serving_ms`: from the record that let a hit be served to the one that serves it, by the broker's clock.
    """

    hits: int = 0
    misses: int = 0
    started: int = 0
    wasted_s: float = 0.0
    useful_s: float = 0.0
    serving_ms: list[int] = field(default_factory=list)

    def add(self, other: Account) -> None:
        """Count another side's runs in."""
        self.hits += other.hits
        self.misses += other.misses
        self.started += other.started
        self.wasted_s += other.wasted_s
        self.useful_s += other.useful_s
        self.serving_ms += other.serving_ms


@dataclass(slots=True)
class _Running:
    """A run whose end has not been read."""

    ended: asyncio.Future[float]
    account: Account
    decisions_s: Sequence[float]


class Player:
    """Plays workflows on one stack and follows all of its events with one consumer."""

    def __init__(self, settings: Settings, producer: IntentProducer, consumer: Any) -> None:
        self.settings = settings
        self._producer, self._consumer = producer, consumer
        self._runs: dict[str, _Running] = {}
        self._deciding: set[asyncio.Task[None]] = set()

    async def play(
        self,
        workflow: Mapping[str, Any],
        account: Account,
        decisions_s: Sequence[float] = (),
        session_id: str | None = None,
    ) -> float:
        """Seconds from asking for the run until its end is read from the log.

        Args:
            decisions_s: how long whoever decides takes after each layer that asks.

        Raises:
            RunDidNotComplete: it ended otherwise.
            TimeoutError: it did not end within five minutes.
        """
        run_id = new_id("run")
        running = _Running(asyncio.get_running_loop().create_future(), account, decisions_s)
        self._runs[run_id] = running
        began = time.perf_counter()
        try:
            await self._producer.start_run(workflow, run_id=run_id, session_id=session_id)
            async with asyncio.timeout(END_TIMEOUT_S):
                return await running.ended - began
        finally:
            del self._runs[run_id]

    async def follow(self) -> None:
        """Read the log for ever; whoever waits is told if that fails."""
        try:
            while True:
                fetched = await self._consumer.getmany(timeout_ms=POLL_MS)
                now = time.perf_counter()
                for records in fetched.values():
                    self._see_all(records, now)
        except Exception as error:
            self._fail(error)

    def _see_all(self, records: Sequence[Any], now: float) -> None:
        for record in records:
            if event_type(record) in SEEN and counted(record):
                self._see(counted_event(record), record.timestamp, now)

    def _see(self, event: Event, appended_ms: int, now: float) -> None:
        running = self._runs.get(event.run_id or "")
        if running is None:
            return
        note(running.account, event, appended_ms)
        if isinstance(event.data, DecisionRequired):
            self._decide_later(event.run_id or "", running.decisions_s[event.data.following - 1])
        elif event.type == RunCompleted.TYPE:
            running.ended.set_result(now)
        elif event.type in ENDS:
            running.ended.set_exception(
                RunDidNotComplete(f"{event.run_id} ended as {event.type}: {event.data}")
            )

    def _decide_later(self, run_id: str, after_s: float) -> None:
        task = asyncio.create_task(self._decide(run_id, after_s))
        self._deciding.add(task)
        task.add_done_callback(self._decided)

    async def _decide(self, run_id: str, after_s: float) -> None:
        """Think, then let the run go on."""
        await asyncio.sleep(after_s)
        await self._producer.decide(run_id, RunContinue())

    def _decided(self, task: asyncio.Task[None]) -> None:
        self._deciding.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """Tell whoever waits."""
        for running in self._runs.values():
            if not running.ended.done():
                running.ended.set_exception(error)


def note(account: Account, event: Event, appended_ms: int) -> None:
    """Count an event in."""
    match event.data:
        case SpeculationStarted():
            account.started += 1
        case SpeculationEnded(fate=fate, tool_ms=tool_ms):
            account.wasted_s += 0.0 if fate == "served" else tool_ms / 1_000
        case TaskCompleted(served_by=served_by, tool_ms=tool_ms):
            account.useful_s += 0.0 if served_by == "repeat" else tool_ms / 1_000
            if served_by == "speculation":
                account.serving_ms.append(appended_ms - from_rfc3339(event.occurred_at))
        case RunCompleted(counts=counts):
            account.hits += counts.hits
            account.misses += counts.misses


@asynccontextmanager
async def player(settings: Settings) -> AsyncIterator[Player]:
    """A player on a running stack, while the block does."""
    consumer = AIOKafkaConsumer(**client_options(settings), enable_auto_commit=False)
    async with IntentProducer(settings) as producer, opened(consumer, settings):
        pairs = [TopicPartition(settings.topics.events, number) for number in range(SESSION_PARTITIONS)]
        consumer.assign(pairs)
        await consumer.seek_to_end(*pairs)
        found = Player(settings, producer, consumer)
        async with beside_block(found.follow()):
            yield found
