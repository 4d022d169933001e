"""How many processes a replay takes, and that none of them is left."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from pml.streams.cli.exits import USAGE, exit_code
from pml.streams.replay.parts import Live, Part
from pml.streams.replay.play import ReplayReport
from pml.streams.replay.selection import KAFKA, Selection
from pml.streams.replay.workers import (
    Hearers,
    ReplayWorkerLost,
    _deaf_children,
    processors,
    replay_parts,
    workers_for,
)
from pml.streams.settings import Settings
from tests.fixtures.patience import PATIENCE_S

STATUS = Path("/proc/self/status")
HEARS = "import signal; print(signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, []))"


def parts(*records: int) -> list[Part]:
    return [Part(number, range(count), count, Live()) for number, count in enumerate(records)]


@pytest.mark.parametrize(
    ("records", "most", "expected"),
    [((), 8, 1), ((10, 10), 8, 1), ((15_000, 25_000), 8, 2), ((500_000,), 8, 1), ((90_000,) * 12, 2, 2)],
)
def test_a_process_must_be_worth_its_beginning(records: tuple[int, ...], most: int, expected: int) -> None:
    assert workers_for(parts(*records), most) == expected
    assert processors() >= 1


def test_a_process_begins_without_what_it_does_not_need() -> None:
    asked = "import sys, pml.streams.replay.workers; sys.exit('faust' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", asked], check=False).returncode == 0


async def test_the_largest_part_is_taken_first(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []

    async def replayed(_: Settings, __: Selection, part: Part, ___: Callable[[int], None]) -> ReplayReport:
        taken.append(part.records)
        return ReplayReport()

    monkeypatch.setattr("pml.streams.replay.workers.replay_part", replayed)
    hearers = Hearers(lambda *_: None, lambda _: None)
    await replay_parts(Settings.load(), Selection(KAFKA), parts(20, 30, 10), 1, hearers)
    assert taken == [30, 20, 10]


@asynccontextmanager
async def held_up(folder: Path) -> AsyncIterator[tuple[asyncio.Task[None], set[psutil.Process]]]:
    """A replay whose broker takes connections and says nothing, and the processes that it has begun."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        settings = Settings.load(data_dir=folder, kafka={"bootstrap_servers": address})
        hearers = Hearers(lambda *_: None, lambda _: None)
        before = {*psutil.Process().children(recursive=True)}
        replaying = asyncio.create_task(replay_parts(settings, Selection(KAFKA), parts(1, 1, 1), 2, hearers))
        silent.settimeout(PATIENCE_S)
        connection, _ = await asyncio.to_thread(silent.accept)
        with connection:
            yield replaying, {*psutil.Process().children(recursive=True)} - before


async def test_none_is_left_of_a_replay_that_is_given_up(tmp_path: Path) -> None:
    """Without being told, a process would wait for the broker."""
    async with held_up(tmp_path) as (replaying, began):
        assert began
        replaying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(replaying, PATIENCE_S)
    assert [process for process in began if _works(process)] == []


async def test_a_process_that_is_ended_from_outside_is_said(tmp_path: Path) -> None:
    """With an exit code of its own: 1 would read as a difference."""
    async with held_up(tmp_path) as (replaying, began):
        next(process for process in began if _works(process)).kill()
        with pytest.raises(ReplayWorkerLost, match="--workers 1") as lost:
            await asyncio.wait_for(replaying, PATIENCE_S)
    assert exit_code(lost.value) == USAGE


@pytest.mark.skipif(not STATUS.exists(), reason="only Linux says which signals a process holds back")
async def test_processes_do_not_hear_ctrl_c_before_they_have_come_to_say_so(tmp_path: Path) -> None:
    """It is their parent's: where each tells of it, their tracebacks are mixed."""
    async with held_up(tmp_path) as (replaying, began):
        workers = [*filter(_works, began)]
        assert workers
        assert [_holds_back_ctrl_c(process.pid) for process in workers] == [True] * len(workers)
        assert not _holds_back_ctrl_c(os.getpid())
        replaying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(replaying, PATIENCE_S)


def test_what_begins_deaf_is_deaf_from_its_first_instruction() -> None:
    with _deaf_children():
        deaf = subprocess.run([sys.executable, "-c", HEARS], capture_output=True, text=True, check=True)
    assert deaf.stdout.strip() == "False"
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def _holds_back_ctrl_c(pid: int) -> bool:
    told = (STATUS.parent.parent / str(pid) / STATUS.name).read_text()
    mask = next(line.split()[1] for line in told.splitlines() if line.startswith("SigBlk:"))
    return bool(int(mask, 16) >> (signal.SIGINT - 1) & 1)


def _works(process: psutil.Process) -> bool:
    """Whether it is one of the pool; the resource tracker of `multiprocessing` stays."""
    try:
        return process.is_running() and not any("resource_tracker" in part for part in process.cmdline())
    except psutil.NoSuchProcess:
        return False
