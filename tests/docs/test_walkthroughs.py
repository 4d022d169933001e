"""The walk-through pages do what they say: each command of each page, in order, on a stack of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.docs import walkthroughs
from tests.docs.walkthroughs import Step, missing, outputs, script, steps
from tests.fixtures.patience import PATIENCE_S
from tests.fixtures.project import gone

PAGES = [f"docs/guide/first-{who}.md" for who in ("agent", "data", "operator")]
# Each has a stack of its own for forty seconds; `make test` walks through the shortest.
EVERY_TIME = PAGES[1]
ALL = os.environ.get("PML_WALKTHROUGHS") == "all"
# Forty seconds on a quiet machine; this one may be busy.
PAGE_S = 4 * PATIENCE_S
# How long a stack that was told to stop may take.
STOP_S = PATIENCE_S


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A person's home, in which nothing runs at the end, whatever the page left."""
    home = tmp_path / "home"
    home.mkdir()
    # The broker's jars, which were fetched once.
    fetched = Path.home() / ".m2"
    fetched.mkdir(exist_ok=True)
    (home / ".m2").symlink_to(fetched)
    yield home
    left = started_from(home)
    for process in left:
        process.kill()
    psutil.wait_procs(left, timeout=STOP_S)


def started_from(home: Path) -> list[psutil.Process]:
    """All processes whose home this is."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("HOME") == str(home):
                found.append(process)
        except (psutil.AccessDenied, psutil.NoSuchProcess):
            continue
    return found


def walked(name: str, home: Path) -> tuple[int, str]:
    """The exit code of the whole page, and what it printed."""
    names = ("PML_", "KAFKA_", "CLICKHOUSE_")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(names)}
    environment |= {
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    file = home / "page.txt"
    with file.open("wb") as printed:
        process = subprocess.Popen(
            ["bash", "-c", script(name)],
            cwd=home,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            start_new_session=True,
        )
        try:
            code = process.wait(PAGE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
    return code, file.read_text(errors="replace")


@pytest.mark.integration
@pytest.mark.parametrize("name", PAGES)
def test_a_page_does_what_it_says(name: str, home: Path) -> None:
    if not ALL and name != EVERY_TIME:
        pytest.skip("make walkthroughs walks through all of them")
    code, text = walked(name, home)
    printed = outputs(text)
    reached = steps(name)[: len(printed)]
    assert code == 0, f"exit code {code} at: {reached[-1].command}\n{printed[-1]}"
    for step, output in zip(steps(name), printed, strict=True):
        assert missing(step, output) is None, (
            f"{step.command}\nis shown to print: {missing(step, output)}\n{output}"
        )
    nothing_runs(home)


def nothing_runs(home: Path) -> None:
    """What was told to stop has stopped."""
    give_up = time.monotonic() + STOP_S
    while not gone(left := started_from(home)):
        assert time.monotonic() < give_up, [process.cmdline() for process in left]
        time.sleep(0.1)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_what_one_sees(name: str) -> None:
    shown = [step for step in steps(name) if step.shown]
    assert len(shown) * 3 >= len(steps(name)) > 5
    assert steps(name)[-1].command.startswith("pml down")


def test_what_a_page_shows_is_looked_for_in_order() -> None:
    step = Step("command", ["part  state", "kafka ready …", "…"])
    assert missing(step, "part state\nother\nkafka  ready  127.0.0.1:1\nend\n") is None
    assert missing(step, "kafka ready 127.0.0.1:1\npart state\n") == "kafka ready …"
    assert missing(Step("command", ["kafka"]), "kafka ready\n") == "kafka"


def test_a_document_belongs_to_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    block = "$ cat > a <<'EOF'\n$ no command\n\nEOF\n$ ls\na\n"
    monkeypatch.setattr(walkthroughs.pages, "blocks", lambda name, language: [block])
    assert steps("page") == [Step("cat > a <<'EOF'\n$ no command\n\nEOF"), Step("ls", ["a"])]
