"""The command: `python -m tests.simulation --seeds N [--seed S] [--json] [--mutants all] [--branches N]`."""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from itertools import islice

import structlog

from tests.simulation import hunt
from tests.simulation.branches import Taken, branches
from tests.simulation.play import Result, play
from tests.simulation.report import Report, trace


def main(words: Sequence[str]) -> int:
    """Play seeds, hunt mutants, print the report. 0: every check held and every mutant was found."""
    wanted = arguments(words)
    be_silent()
    began = time.perf_counter()
    if wanted.seed is not None:
        return one(wanted.seed)
    report = Report()
    for result in played(range(wanted.begin, wanted.begin + wanted.seeds), wanted.jobs):
        report.add(result)
    report.seconds = time.perf_counter() - began
    found = hunt.hunt_all(wanted.mutants, wanted.jobs)
    if wanted.rewrite and found:
        hunt.keep(found)
    taken = branches(lambda: _play_each(range(wanted.branches))) if wanted.branches else []
    if wanted.json:
        told = report.as_dict() | {"mutants": [item.as_dict() for item in found]}
        told |= {"branches": [asdict(item) for item in taken]}
        sys.stdout.write(json.dumps(told, indent=2) + "\n")
    else:
        show(report.lines())
        show(branch_lines(taken))
        show(item.line for item in found)
    for result in islice(report.failed, 3):
        show(trace(result))
    return 1 if report.failed or not all(item.in_time for item in found) else 0


def arguments(words: Sequence[str]) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=300, help="how many seeds to play")
    parser.add_argument("--begin", type=int, default=0, help="the first of them")
    parser.add_argument("--seed", type=int, help="play this one and print its trace")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument(
        "--mutants",
        choices=["none", "look", "all"],
        default="none",
        help="hunt all mutants, too; or look at them: first at the seeds that were kept",
    )
    parser.add_argument("--rewrite", action="store_true", help="keep the seeds that found mutants")
    parser.add_argument("--branches", type=int, default=0, help="seeds to see the core's branches by, too")
    parser.add_argument("--json", action="store_true", help="for programs")
    return parser.parse_args(words)


def _play_each(seeds: Iterable[int]) -> None:
    for seed in seeds:
        play(seed)


def branch_lines(found: Sequence[Taken]) -> Iterable[str]:
    """Branches taken, by module."""
    if not found:
        return
    taken, total = sum(item.taken for item in found), sum(item.total for item in found)
    yield ""
    yield f"branches of the core: {taken} of {total} taken ({taken / max(1, total):.0%})"
    for item in found:
        lines = ", ".join(map(str, item.open_lines))
        yield f"  {item.taken:>4} of {item.total:<4} {item.module}" + (
            f"; one way only: {lines}" if lines else ""
        )


def be_silent() -> None:
    """The product logs what it meets; a report is what is wanted here. What is loaded now is no garbage."""
    gc.collect()
    gc.freeze()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


def played(seeds: Iterable[int], jobs: int) -> Iterable[Result]:
    """Results of these seeds, by as many processes."""
    if jobs == 1:
        yield from map(play, seeds)
        return
    with ProcessPoolExecutor(jobs, initializer=be_silent) as pool:
        yield from pool.map(play, seeds, chunksize=8)


def one(seed: int) -> int:
    """One seed: its trace where a check failed, a word where none did."""
    result = play(seed)
    if result.violation is None:
        show([f"seed {seed} ({result.plot}): {sum(result.checks.values())} checks held"])
        return 0
    show(trace(result))
    return 1


def show(lines: Iterable[str]) -> None:
    """Print."""
    for line in lines:
        sys.stdout.write(line + "\n")
