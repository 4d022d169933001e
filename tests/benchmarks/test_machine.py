"""Who takes the machine while something is measured."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.machine import SYNCS, OthersWatch, commit, disk_sync_ms, others_share, own_cpu_s

# Half a second of processor time, however long that takes.
BURN = "import time\nwhile time.process_time() < 0.5: pass"


@pytest.mark.parametrize(
    ("everybody_s", "own_s", "share"), [(10, 10, 0), (10, 0, 0.5), (20, 0, 1), (15, 10, 0.25), (9, 10, 0)]
)
def test_others_are_everybody_but_us(everybody_s: float, own_s: float, share: float) -> None:
    assert others_share(everybody_s, own_s, elapsed_s=10, cores=2) == share


def test_nothing_is_said_of_no_time() -> None:
    assert others_share(1, 0, elapsed_s=0, cores=2) == 0


def test_children_that_were_waited_for_are_ours() -> None:
    before = own_cpu_s()
    subprocess.run([sys.executable, "-c", BURN], check=True)
    assert own_cpu_s() - before >= 0.4


def test_a_watch_says_a_share() -> None:
    assert 0 <= OthersWatch().share() <= 1


def test_a_disk_is_as_slow_as_its_median_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits_s = [0.0] * (SYNCS // 2 - 1) + [0.01] * (SYNCS // 2) + [0.1]
    monkeypatch.setattr(os, "fsync", lambda descriptor: time.sleep(waits_s.pop()))
    assert 10 <= disk_sync_ms(tmp_path) < 100
    assert waits_s == []


def test_what_was_written_to_measure_a_disk_is_gone(tmp_path: Path) -> None:
    assert disk_sync_ms(tmp_path) > 0
    assert list(tmp_path.iterdir()) == []


def test_the_commit_is_named() -> None:
    assert commit() == "unknown" or len(commit().rstrip("+")) == 12
