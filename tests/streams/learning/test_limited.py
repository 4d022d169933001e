"""A process that takes too much is ended, and nothing is left of one that was."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import psutil
import pytest

from pml.streams.learning.limited import MIB, Limits, OverLimit, TrainingFailed, run_limited
from tests.fixtures.project import is_gone

ROOM = Limits(memory_bytes=1024 * MIB, time_s=60)
# It tells its own id and that of a child of its own, then both wait.
FAMILY = (
    "import os, subprocess, sys, time; "
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); "
    "open(sys.argv[1] + '.new', 'w').write(f'{os.getpid()} {child.pid}'); "
    "os.rename(sys.argv[1] + '.new', sys.argv[1]); time.sleep(600)"
)


def python(program: str, *arguments: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", program, *arguments]


async def test_what_it_wrote_and_took_is_told_and_it_stands_behind_others() -> None:
    linux = sys.platform == "linux"
    asked = f"import os; print(os.nice(0), not {linux} or os.sched_getscheduler(0) == os.SCHED_IDLE)"
    ended = await run_limited(python(asked), os.environ, ROOM)
    assert ended.output == b"%d True\n" % min(19, os.nice(0) + ROOM.niceness)
    assert ended.took_s > 0


async def test_more_memory_than_allowed_ends_it() -> None:
    greedy = "import time; held = bytearray(300 * 1024 * 1024); time.sleep(600)"
    with pytest.raises(OverLimit, match=r"more than 100, .*--memory-mb"):
        await run_limited(python(greedy), os.environ, Limits(memory_bytes=100 * MIB, time_s=60))


async def test_more_time_than_allowed_ends_it() -> None:
    with pytest.raises(OverLimit, match="--time-limit"):
        await run_limited(
            python("import time; time.sleep(600)"), os.environ, Limits(memory_bytes=1024 * MIB, time_s=0.1)
        )


def has_ended(pid: int) -> bool:
    """Whoever adopts it takes a moment to bury it."""
    try:
        return is_gone(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return True


async def test_who_is_cancelled_leaves_nothing_behind(tmp_path: Path) -> None:
    told = tmp_path / "pids"
    running = asyncio.create_task(run_limited(python(FAMILY, str(told)), os.environ, ROOM))
    while not await asyncio.to_thread(told.exists):
        assert not running.done()
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    for pid in map(int, (await asyncio.to_thread(told.read_text)).split()):
        while not has_ended(pid):
            await asyncio.sleep(0.01)


async def test_who_ends_before_its_child_leaves_no_child_behind(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    program = (
        "import subprocess, sys; "
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); "
        "open(sys.argv[1], 'w').write(str(child.pid))"
    )
    await run_limited(python(program, str(told)), os.environ, ROOM)
    pid = int(told.read_text())
    while not has_ended(pid):
        await asyncio.sleep(0.01)


async def test_one_that_cannot_begin_is_told() -> None:
    with pytest.raises(TrainingFailed, match="pml train"):
        await run_limited(["/nowhere/python"], os.environ, ROOM)


@pytest.mark.parametrize(
    ("program", "said"),
    [("import sys; sys.exit('no sessions')", "no sessions"), ("raise SystemExit(7)", "exit code 7")],
)
async def test_one_that_fails_is_told_in_its_last_words(program: str, said: str) -> None:
    with pytest.raises(TrainingFailed, match=said):
        await run_limited(python(program), os.environ, ROOM)
