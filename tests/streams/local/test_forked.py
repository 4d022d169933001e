"""A worker that is forked is what a shell would have started, and ends with what it is forked from."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest

from pml.streams.local.child import Child, StartFailed, last_lines
from pml.streams.local.forked import Template
from tests.fixtures.patience import PATIENCE_S
from tests.fixtures.project import gone, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux alone")

# It waits for a broker that does not answer, and gives up after 40 s: what is killed is gone long before.
WAITS = ["worker", "sink"]
KILLED_S = 20
# Starts two workers and stays.
STARTER = """
import asyncio, os, sys
from pathlib import Path
from pml.streams.local.child import Child
from pml.streams.local.forked import Template

async def main(folder):
    launch = Template(folder / "template.log", os.environ).forked(["worker", "sink"], os.environ)
    children = [Child(launch, folder / f"{number}.log") for number in range(2)]
    await asyncio.gather(*(child.start() for child in children))
    print("up", flush=True)
    await asyncio.sleep(600)

asyncio.run(main(Path(sys.argv[1])))
"""


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """What a worker finds, and a broker that never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        given = {"PML_DATA_DIR": str(tmp_path), "KAFKA_BOOTSTRAP_SERVERS": address}
        yield {"PATH": os.environ["PATH"], **given}


@pytest.fixture
async def template(tmp_path: Path) -> AsyncIterator[Template]:
    template = Template(tmp_path / "template.log", {**os.environ, "PML_LOG__LEVEL": "debug"})
    yield template
    await template.stop()


def templates() -> list[psutil.Process]:
    below = psutil.Process().children(recursive=True)
    return [process for process in below if "pml.streams.local.template" in process.cmdline()]


async def test_it_has_its_arguments_its_variables_and_its_exit_code(
    template: Template, environment: dict[str, str], tmp_path: Path
) -> None:
    child = Child(template.forked(["config", "--json"], environment), tmp_path / "log" / "child.log")
    for _ in range(2):
        await child.start()
        assert await child.wait() == 0
    told = child.log.read_text()
    assert told.count('"data_dir"') == 2, "it appends"
    assert str(tmp_path) in told
    assert "debug" not in told
    wrong = Child(template.forked(["no-such-command"], environment), tmp_path / "wrong.log")
    await wrong.start()
    assert await wrong.wait() == 2
    assert "no-such-command" in wrong.last_words()


async def test_it_has_a_name_a_session_and_stands_as_far_behind_as_it_is_told(
    template: Template, environment: dict[str, str], tmp_path: Path
) -> None:
    child = Child(template.forked(WAITS, environment, niceness=3), tmp_path / "child.log")
    await child.start()
    assert child.pid is not None
    process = psutil.Process(child.pid)
    async with asyncio.timeout(PATIENCE_S):
        while not process.cmdline()[0].startswith("pml worker sink"):
            await asyncio.sleep(0.02)
    assert process.nice() == min(os.nice(0) + 3, 19)
    assert os.getsid(process.pid) == process.pid
    async with asyncio.timeout(PATIENCE_S):
        while os.readlink(f"/proc/{process.pid}/fd/0") != os.devnull:
            await asyncio.sleep(0.02)
    await child.stop(PATIENCE_S)
    assert child.pid is None


async def test_many_are_started_at_once_and_each_is_its_own(
    template: Template, environment: dict[str, str], tmp_path: Path
) -> None:
    launch = template.forked(["config", "--json"], environment)
    children = [Child(launch, tmp_path / f"{number}.log") for number in range(8)]
    await asyncio.gather(*(child.start() for child in children))
    assert len({child.started_pid for child in children}) == len(children)
    assert await asyncio.gather(*(child.wait() for child in children)) == [0] * len(children)
    assert all('"data_dir"' in child.log.read_text() for child in children)


async def test_one_that_is_killed_says_so_to_all_who_wait(
    template: Template, environment: dict[str, str], tmp_path: Path
) -> None:
    child = Child(template.forked(WAITS, environment), tmp_path / "child.log")
    await child.start()
    waiting = [asyncio.create_task(child.wait()) for _ in range(2)]
    await asyncio.sleep(0)
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    assert await asyncio.gather(*waiting) == [-signal.SIGKILL] * 2


async def test_a_start_that_is_given_up_leaves_nothing(
    template: Template, environment: dict[str, str], tmp_path: Path
) -> None:
    await template.start()
    (server,) = templates()
    child = Child(template.forked(WAITS, environment), tmp_path / "child.log")
    starting = asyncio.create_task(child.start())
    await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    after = Child(template.forked(["config"], environment), tmp_path / "after.log")
    await after.start()
    await after.wait()
    async with asyncio.timeout(KILLED_S):
        while not gone(server.children()):
            await asyncio.sleep(0.02)


async def test_with_a_template_that_dies_its_forks_end_and_the_next_start_has_another(
    template: Template, environment: dict[str, str], tmp_path: Path
) -> None:
    child = Child(template.forked(WAITS, environment), tmp_path / "child.log")
    await child.start()
    forked = psutil.Process(child.pid)
    forked.parent().kill()
    assert await child.wait() == -signal.SIGKILL
    async with asyncio.timeout(KILLED_S):
        while not gone([forked]):
            await asyncio.sleep(0.02)
    await child.start()
    assert child.pid not in (None, forked.pid)
    await template.stop()
    assert await child.wait() == -signal.SIGKILL
    assert templates() == []


async def test_a_template_that_cannot_start_says_why(tmp_path: Path, environment: dict[str, str]) -> None:
    broken = Template(tmp_path / "template.log", {**os.environ, "PYTHONHOME": "/none"})
    with pytest.raises(StartFailed, match="forked from ended"):
        await Child(broken.forked(WAITS, environment), tmp_path / "child.log").start()
    await broken.stop()


def test_forks_and_what_they_are_forked_from_end_with_whoever_started_them(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    program = [sys.executable, "-c", STARTER, str(tmp_path)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, env=environment) as starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == b"up\n", last_lines(tmp_path / "template.log", 5)
        below = psutil.Process(starter.pid).children(recursive=True)
        assert len(below) == 3
        starter.kill()
    wait_until(lambda: gone(below), "forks of a process that was killed", KILLED_S)
