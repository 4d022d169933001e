"""The named points of the drills."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

PROGRAM = """
from pml.streams.crash_points import crash_point
for number in range(3):
    crash_point("drill.point")
    print(number, flush=True)
"""


def run(crash_at: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"PML_CRASH_AT": crash_at} if crash_at else {},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_point_does_nothing_unless_it_is_named() -> None:
    for crash_at in ("", "drill.other"):
        done = run(crash_at)
        assert (done.returncode, done.stdout) == (0, "0\n1\n2\n"), done.stderr


def test_a_named_point_kills_the_process_at_once() -> None:
    done = run("drill.point")
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "")


def test_a_number_names_the_pass_that_is_hit() -> None:
    done = run("drill.point:3")
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "0\n1\n")


def test_a_file_names_the_point_once_it_is_there(tmp_path: Path) -> None:
    named = tmp_path / "crash"
    done = run(f"@{named}")
    assert (done.returncode, done.stdout) == (0, "0\n1\n2\n"), done.stderr
    named.write_text("drill.point:2\n")
    done = run(f"@{named}")
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "0\n")
