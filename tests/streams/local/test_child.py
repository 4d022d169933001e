import os
import sys
from pathlib import Path

import pytest

from pml.streams.local.child import Child, last_lines, program, trim
from tests.fixtures.patience import PATIENCE_S

SAY = "import os, sys; print('hello', os.environ['NAME'], flush=True); sys.exit(7)"
LINGER = "import signal, time; signal.signal(signal.SIGTERM, {}); print('up', flush=True); time.sleep(60)"


def child(code: str, log: Path) -> Child:
    return Child(program([sys.executable, "-c", code], {"NAME": "you"}), log)


async def until_said(log: Path, word: str) -> None:
    import asyncio

    async with asyncio.timeout(PATIENCE_S):
        while word not in last_lines(log, 1):
            await asyncio.sleep(0.02)


async def test_a_child_has_its_environment_its_log_and_its_exit_code(tmp_path: Path) -> None:
    process = child(SAY, tmp_path / "log" / "child.log")
    assert process.pid is None
    await process.start()
    assert await process.wait() == 7
    assert process.pid is None
    assert process.started_pid
    await process.start()
    await process.wait()
    assert process.last_words() == "hello you\nhello you"


async def test_a_child_that_obeys_is_asked_and_one_that_does_not_is_killed(tmp_path: Path) -> None:
    obedient = child(LINGER.format("lambda *_: exit(0)"), tmp_path / "obedient.log")
    deaf = child(LINGER.format("signal.SIG_IGN"), tmp_path / "deaf.log")
    for process in (obedient, deaf):
        await process.start()
        await until_said(process.log, "up")
    await obedient.stop(20)
    await deaf.stop(0.1)
    assert (await obedient.wait(), await deaf.wait()) == (0, -9)


async def test_stopping_what_never_ran_is_nothing(tmp_path: Path) -> None:
    process = child(SAY, tmp_path / "child.log")
    await process.stop(1)
    assert await process.wait() == 0
    assert process.last_words() == ""


def test_a_log_that_grew_is_put_aside_and_goes_on_at_its_start(tmp_path: Path) -> None:
    log = tmp_path / "child.log"
    with log.open("ab") as writer:
        writer.write(b"x" * 100)
        writer.flush()
        trim(log, 50)
        writer.write(b"next\n")
    assert log.read_bytes() == b"next\n"
    assert (tmp_path / "child.log.1").read_bytes() == b"x" * 100
    trim(log, 50)
    assert log.read_bytes() == b"next\n"


@pytest.mark.skipif(sys.platform != "linux", reason="niceness is set on the leash, which Linux alone has")
@pytest.mark.parametrize("behind", [0, 3])
async def test_a_child_stands_as_far_behind_as_it_is_told(tmp_path: Path, behind: int) -> None:
    command = [sys.executable, "-c", "import os; print(os.nice(0), flush=True)"]
    process = Child(program(command, {}, niceness=behind), tmp_path / "child.log")
    await process.start()
    await process.wait()
    assert process.last_words() == str(min(os.nice(0) + behind, 19))
