"""Which branches of the core a simulation takes: coverage.py over deciding and speculating, on some seeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import coverage

ROOT = Path(__file__).parents[2]
WATCHED = ("processors/workflow", "processors/speculation")


@dataclass(frozen=True)
class Taken:
    """The branches of one module; `open_lines` are those that went one way only."""

    module: str
    taken: int
    total: int
    open_lines: tuple[int, ...]


def branches(work: Callable[[], None]) -> list[Taken]:
    """The branches that some work takes in the core's functions."""
    watch = coverage.Coverage(branch=True, data_file=None, source=[str(ROOT / name) for name in WATCHED])
    watch.start()
    try:
        work()
    finally:
        watch.stop()
    return [_taken(watch, path) for path in sorted(watch.get_data().measured_files())]


def _taken(watch: coverage.Coverage, path: str) -> Taken:
    exits = watch.branch_stats(path)
    return Taken(
        module=str(Path(path).resolve().relative_to(ROOT.resolve())),
        taken=sum(taken for _, taken in exits.values()),
        total=sum(total for total, _ in exits.values()),
        open_lines=tuple(sorted(line for line, (total, taken) in exits.items() if taken < total)),
    )
