"""Which branches of the core a simulation takes: coverage.py over deciding and speculating, on some seeds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import coverage

ROOT = Path(__file__).parents[2]
WATCHED = ("processors/workflow", "processors/speculation")


def branches(work: Callable[[], None]) -> dict[str, tuple[int, int, list[str]]]:
    """By module: branches taken, branches that there are, and those not taken as `line->line`.

    The modules must have been imported before, so only what functions do is seen, and not what stands
    outside of them.
    """
    watch = coverage.Coverage(branch=True, data_file=None, source=[str(ROOT / name) for name in WATCHED])
    watch.start()
    try:
        work()
    finally:
        watch.stop()
    found: dict[str, tuple[int, int, list[str]]] = {}
    for path in sorted(watch.get_data().measured_files()):
        analysis = watch._analyze(path)
        numbers, missing = analysis.numbers, analysis.missing_branch_arcs()
        untaken = [f"{first}->{second}" for first, ends in sorted(missing.items()) for second in ends]
        taken = numbers.n_branches - numbers.n_missing_branches
        found[str(Path(path).resolve().relative_to(ROOT.resolve()))] = taken, numbers.n_branches, untaken
    return found
