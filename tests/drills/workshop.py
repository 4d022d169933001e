"""A stack whose parts a drill kills, pauses and starts again, with work in flight.

Broker and store are the embedded ones, each role is a process of its own, as `pml worker ROLE` runs it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

import orjson
import psutil

from pml.schemas.errors import BrokerUnavailable
from pml.streams.client import IntentProducer, Submission, new_id
from pml.streams.crash_points import VARIABLE
from pml.streams.health import read_all
from pml.streams.local.kafka import EmbeddedKafka
from pml.streams.local.supervisor import migrate_store
from pml.streams.settings import Settings
from pml.streams.topics import ensure_topics
from tests.drills.tally import Tally
from tests.fixtures.commands import Command, start_role
from tests.fixtures.patience import PATIENCE_S
from tests.fixtures.settings import folder_settings
from tests.fixtures.store import EmbeddedServer

ROLES = ("orchestrator", "bridge", "sink")
STARTED = (*ROLES, "metrics")
SERVER = Path(__file__).parent.parent / "servers" / "ledger_server.py"
# What a part that died had in hand is given up soon, so that its run ends.
SHORT = {"task_s": 3, "queue_s": 8}
# Sessions of drills are noticed as gone after this, not after the ten seconds of a release.
SESSION_TIMEOUT_S = 3
POLL_S = 0.02
PERMISSIONS = {
    "tools": {
        "ledger:look": {"scope": "readonly", "approval": "auto", "touches": ["ledger:{name}"]},
        "ledger:read_slowly": {"scope": "readonly", "approval": "auto", "touches": ["ledger:{name}"]},
        "ledger:*": {"scope": "readonly", "approval": "auto"},
        "ledger:add": {"scope": "filesystem", "approval": "auto", "touches": ["ledger:{name}"]},
    }
}
SLOW = {"type": "reference", "expression": "slow.name"}
FAST = {"type": "reference", "expression": "fast.name"}
WORKFLOW = {
    "name": "drill",
    "context": {"name": "nobody"},
    "options": {"timeout_s": 60},
    "tasks": [
        {"id": "slow", "tool": "ledger:read_slowly", "arguments": {"name": "a"}},
        {"id": "fast", "tool": "ledger:look", "arguments": {"name": "b"}},
        {"id": "early", "tool": "ledger:read_slowly", "arguments": {"name": FAST}},
        {"id": "late", "tool": "ledger:look", "arguments": {"name": SLOW}},
        {
            "id": "effect",
            "tool": "ledger:add",
            "arguments": {"name": {"type": "parameter", "parameter_name": "name"}},
            "depends_on": ["early", "late"],
        },
        {"id": "after", "tool": "ledger:look", "arguments": {"name": "c"}, "depends_on": ["effect"]},
    ],
}

# What a session of four runs calls, one after the other: what follows is foreseen, but for the effect.
# So many sessions take turns that there is time for it.
TURNS = (("look", "x"), ("read_slowly", "y"), ("look", "z"), ("add", None))
AT_ONCE = 4
# So many runs of each kind come quickly, for a part to die among; the others slower: they find work after it,
# and no heap of it on a machine that takes a minute to start a part.
SOON, LATER = 12, 4


def turn_of(number: int) -> tuple[str, dict[str, Any]]:
    """The session and the workflow of the turn with this number, counted over all sessions."""
    round_, at = divmod(number, AT_ONCE)
    block, place = divmod(round_, len(TURNS))
    tool, name = TURNS[place]
    task = {"id": "turn", "tool": f"ledger:{tool}", "arguments": {"name": name or f"turn-{number}"}}
    return f"turns-{block}-{at}", {"name": "turn", "options": {"timeout_s": 60}, "tasks": [task]}


def drill_settings(
    folder: Path, kafka: str, store: str, prefix: str, timeouts: Mapping[str, float] = SHORT
) -> Settings:
    """Settings of one drill: topics and tables of its own."""
    server = {"command": sys.executable, "args": [str(SERVER), str(folder / "ledger.jsonl")]}
    (folder / "mcp-servers.yaml").write_bytes(orjson.dumps({"mcpServers": {"ledger": server}}))
    (folder / "mcp-permissions.yaml").write_bytes(orjson.dumps({"version": 1, **PERMISSIONS}))
    (folder / "ledger.jsonl").touch()
    return folder_settings(
        folder,
        kafka,
        prefix,
        session_timeout_s=SESSION_TIMEOUT_S,
        clickhouse={"url": store, "database": prefix.replace("-", "_")},
        timeouts=dict(timeouts),
        speculation={"predictions": "on"},
    )


@dataclass(frozen=True, slots=True)
class Ended:
    """A process that was found dead, with its exit code, and when (seconds since 1970)."""

    name: str
    pid: int
    code: int
    at_s: float


class Workshop:
    """Starts and ends roles, and keeps work coming.

    Args:
        roles: what runs, by the name of its process; several roles of one process are separated by spaces.
    """

    def __init__(
        self,
        settings: Settings,
        broker: EmbeddedKafka,
        store: EmbeddedServer,
        store_folder: Path,
        roles: Mapping[str, str] = dict(zip(STARTED, STARTED, strict=True)),
    ) -> None:
        self.settings = settings
        self.broker = broker
        self.store = store
        self.store_folder = store_folder
        self.ledger = settings.mcp_servers.parent / "ledger.jsonl"
        self.submissions: list[Submission] = []
        self.tally = Tally()
        self.kept = dict(roles)
        self.found_dead: list[Ended] = []
        self._turns = 0
        self._roles: dict[str, Command] = {}

    async def set_up(self) -> None:
        """Topics, tables, and every role."""
        await ensure_topics(self.settings)
        await asyncio.to_thread(migrate_store, self.settings)
        for name, role in self.kept.items():
            self.start(role, name=name)
        for name, role in self.kept.items():
            await self.until_ready(name, role)

    def start(self, role: str, crash_at: str | None = None, name: str | None = None) -> Command:
        """Start a role, to be killed where `crash_at` says; a second one of a role needs a name."""
        told = self._crash_file(name or role)
        told.unlink(missing_ok=True)
        environment = {**os.environ, **self.settings.environment(), VARIABLE: crash_at or f"@{told}"}
        log = self.settings.data_dir / f"{name or role}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        process = start_role(role, environment, log, Path.cwd())
        self._roles[name or role] = process
        return process

    def crash_later(self, name: str, point: str) -> None:
        """A running process is killed where it next passes this point."""
        told = self._crash_file(name)
        written = told.with_suffix(".written")
        written.write_text(point)
        written.rename(told)

    def _crash_file(self, name: str) -> Path:
        return self.settings.data_dir / f"{name}.crash"

    async def until_ready(self, name: str, role: str | None = None) -> None:
        """Wait until a role does its work."""
        pid = self._roles[name].pid

        def ready() -> bool:
            assert self._roles[name].poll() is None, f"{name} ended while it started: {self.tail(name)}"
            return any(
                record.pid == pid and record.state == "ready" for record in read_all(self.settings.data_dir)
            )

        await until(ready, PATIENCE_S, f"{role or name} is not ready")

    async def until_dead(self, name: str, timeout_s: float = PATIENCE_S) -> int:
        """Wait until a process has ended; its exit code."""
        await until(lambda: self._roles[name].poll() is not None, timeout_s, f"{name} lives on")
        return int(self._roles[name].returncode)

    def alive(self, name: str) -> bool:
        """Whether a process runs."""
        return self._roles[name].poll() is None

    def memory_mb(self, name: str) -> float:
        """What a process holds in memory."""
        return float(psutil.Process(self._roles[name].pid).memory_info().rss) / 1024**2

    def kill(self, name: str) -> None:
        """kill -9."""
        self._roles[name].kill()
        self._roles[name].wait()

    async def stop(self, name: str) -> None:
        """SIGTERM until it has ended: it leaves its group, so that whoever comes next need not wait."""
        self.terminate(name)
        assert await self.until_dead(name) == 0, f"{name} did not stop cleanly: {self.tail(name)}"

    def pid(self, name: str) -> int:
        """Its process id."""
        return self._roles[name].pid

    def terminate(self, name: str) -> None:
        """SIGTERM: it should end cleanly."""
        self._roles[name].terminate()

    def pause(self, name: str) -> None:
        """SIGSTOP: it does not know that time goes on."""
        os.kill(self._roles[name].pid, signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """SIGCONT."""
        os.kill(self._roles[name].pid, signal.SIGCONT)

    def tail(self, name: str) -> str:
        """The last words of a role."""
        return (self.settings.data_dir / f"{name}.log").read_text(errors="replace")[-2_000:]

    def account(self, name: str) -> str:
        """What a role says of itself, whether its process lives, and its last words."""
        process = self._roles[name]
        told = [record for record in read_all(self.settings.data_dir) if record.pid == process.pid]
        return f"{name} {process.pid}, exit code {process.poll()}, says {told}:\n{self.tail(name)}"

    @asynccontextmanager
    async def tended(self) -> AsyncIterator[None]:
        """While the block runs, what ends itself is started again, as a supervisor would."""
        stop = asyncio.Event()
        tending = asyncio.create_task(self._tend(stop))
        try:
            yield
        finally:
            stop.set()
            await tending

    async def _tend(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            for name, role in list(self.kept.items()):
                if not self.alive(name):
                    process = self._roles[name]
                    self.found_dead.append(Ended(name, process.pid, int(process.returncode), time.time()))
                    self.start(role, name=name)
            await _wait(stop, 1)

    async def tear_down(self) -> None:
        """End everything that was started."""
        for process in self._roles.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in self._roles.values():
            await asyncio.to_thread(_end, process)

    @asynccontextmanager
    async def work(self, per_second: float = 2.0) -> AsyncIterator[None]:
        """Runs keep coming while the block runs, in sessions of their own; the last ones come after it.

        Quickly at first, slower when there were some.

        With each comes a turn of a longer session, in which what follows is predicted.
        """
        stop = asyncio.Event()
        before = len(self.submissions)
        coming = asyncio.create_task(self._submit(1 / per_second, stop))
        try:
            await until(lambda: len(self.submissions) > before + 2, PATIENCE_S, "no work comes")
            yield
        finally:
            stop.set()
            await coming

    async def _submit(self, every_s: float, stop: asyncio.Event) -> None:
        async with IntentProducer(self.settings) as producer:
            for round_ in count():
                last = stop.is_set()
                number = len(self.submissions)
                self.submissions.append(
                    await producer.start_run(WORKFLOW, context={"name": f"effect-{number}"})
                )
                session, turn = turn_of(self._turns)
                self._turns += 1
                self.submissions.append(await producer.start_run(turn, session_id=session))
                if last:
                    return
                await _wait(stop, every_s if round_ < SOON else every_s * LATER)

    async def _start_run(self, producer: IntentProducer) -> Submission:
        """Ask for a run until Kafka has taken it, each time by the same ids: it is obeyed once."""
        run_id, command_id = new_id("run"), new_id("cmd")
        context = {"name": f"effect-{len(self.submissions)}"}
        while True:
            try:
                return await producer.start_run(
                    WORKFLOW, context=context, run_id=run_id, command_id=command_id
                )
            except BrokerUnavailable:
                await asyncio.sleep(0.5)


def _end(process: Command) -> None:
    try:
        process.wait(PATIENCE_S)
    except TimeoutExpired:
        process.kill()
        process.wait()


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)


async def until(condition: Callable[[], bool], timeout_s: float, otherwise: str) -> None:
    """Wait for a condition."""
    give_up = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < give_up, f"{otherwise} after {timeout_s:.0f} s"
        await asyncio.sleep(POLL_S)


def lines(path: Path) -> list[Mapping[str, Any]]:
    """The lines of a server's own log."""
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]
