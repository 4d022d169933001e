"""What a benchmark leaves behind."""

from __future__ import annotations

import io
from pathlib import Path

import orjson
from rich.console import Console

from benchmarks.figures import Bound, Figure
from benchmarks.machine import describe
from benchmarks.report import Result, show


def result(ratio: float, others_share: float = 0.0) -> Result:
    figure = Figure("one", "ms", (ratio,), (1.0,), Bound("at most", 2.0, 1.0), note="how it was made")
    machine = {"processor": "a processor", "cores": 2, "python": "3.11.7", "disk_sync_ms": 0.31}
    return Result("step", (figure,), 1, 9, "abc+", machine, others_share, 12.0)


def shown(*results: Result) -> str:
    console = Console(file=io.StringIO(), width=160, color_system=None)
    show(results, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_table_marks_what_is_not_held() -> None:
    assert "NOT HELD" in shown(result(2.5))
    assert "NOT HELD" not in shown(result(2.0))


def test_the_table_names_seed_commit_and_machine() -> None:
    said = shown(result(1.5))
    assert "seed 9" in said
    assert "commit abc+" in said
    assert "a processor, 2 cores" in said
    assert "disk sync 0.31 ms" in said
    assert "one: how it was made" in said


def test_a_busy_machine_is_told() -> None:
    assert "do not trust" in shown(result(1.5, others_share=0.5))
    assert "do not trust" not in shown(result(1.5, others_share=0.1))


def test_the_file_holds_the_figures_and_where_they_come_from(tmp_path: Path) -> None:
    kept = orjson.loads(result(1.5).write(tmp_path).read_bytes())
    assert kept["figures"][0]["ratio"] == 1.5
    assert (kept["name"], kept["seed"], kept["commit"], kept["rounds"]) == ("step", 9, "abc+", 1)
    assert kept["machine"]["cores"] == 2


def test_the_machine_is_described_in_json(tmp_path: Path) -> None:
    said = orjson.loads(orjson.dumps(describe(tmp_path)))
    assert said["disk_sync_ms"] > 0
    assert said["cores"] > 0
    assert said["packages"]["aiokafka"]
