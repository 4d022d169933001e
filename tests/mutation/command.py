"""The command: `python -m tests.mutation [--module M] [--sample N] [--seed S] [--jobs J] [--json]`."""

from __future__ import annotations

import argparse
import json
import math
import random
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from tests.mutation.hunting import Hunt, Verdict, each
from tests.mutation.mutants import Module, Mutant, modules
from tests.mutation.report import Report
from tests.mutation.survivors import gone, load

FOLDERS = ("processors/speculation", "processors/workflow")
TESTS = ("tests/processors", "tests/golden")
SURVIVORS = "tests/mutation/survivors.yaml"
FLOOR = 0.85


def main(words: Sequence[str]) -> int:
    """Hunt and report. 0: enough are killed and the list of survivors is true; 2: there was no hunt."""
    # A shell has what it starts in the background ignore it; a hunt that is interrupted tells what it found.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    wanted = arguments(words)
    root = Path(wanted.root)
    found = modules([root / folder for folder in wanted.sources], root / Path(wanted.sources[0]).parts[0])
    reasons = load(root / wanted.survivors)
    chosen = sampled([item for item in found if wanted.module in item.name], wanted.sample, wanted.seed)
    report = Report(
        reasons=reasons,
        whole=not wanted.sample,
        floor=wanted.floor,
        gone=gone(reasons, (mutant.name for _, mutant in each(found))),
    )
    if wanted.again:
        chosen, report.verdicts = alive(json.loads(wanted.again.read_text()), found)
        report.whole = len(chosen) + len(report.verdicts) == sum(len(item.mutants) for item in found)
    problem = _hunt(wanted, chosen, report)
    if problem:
        Console(stderr=True).print(problem, style="red", markup=False)
        return 2
    _show(report, wanted)
    return 0 if report.good else 1


def arguments(words: Sequence[str]) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--module", default="", help="only modules with this in their path")
    parser.add_argument(
        "--sample", type=int, default=0, help="so many mutants, spread over the modules (default: all)"
    )
    parser.add_argument("--seed", type=int, default=1, help="which of them")
    parser.add_argument(
        "--again", type=Path, help="what an earlier --json wrote: try its survivors once more"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument("--floor", type=float, default=FLOOR, help="the share that has to be killed")
    parser.add_argument("--sources", nargs="+", default=FOLDERS, help="folders of modules")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="folders or files of tests")
    parser.add_argument("--survivors", default=SURVIVORS, help="the list of survivors with their reasons")
    parser.add_argument("--root", default=".", help="the folder that all of these lie in")
    return parser.parse_args(words)


def sampled(found: Sequence[Module], size: int, seed: int) -> list[tuple[Module, Mutant]]:
    """All mutants, or some of every module, in proportion; mixed, so that the first stand for the rest."""
    if not size:
        return list(each(found))
    share = size / max(1, sum(len(module.mutants) for module in found))
    chosen = [pair for module in found for pair in _some(module, share, seed)]
    random.Random(seed).shuffle(chosen)
    return chosen


def alive(told: dict[str, Any], found: Sequence[Module]) -> tuple[list[tuple[Module, Mutant]], list[Verdict]]:
    """The mutants that lived when this was told, and the verdicts on the others that still are mutants."""
    known = {mutant.name: (module, mutant) for module, mutant in each(found)}
    before = [item for item in told["verdicts"] if item["mutant"] in known]
    dead = [item for item in before if item["fate"] in {"killed", "timed out"}]
    lived = [known[item["mutant"]] for item in before if item not in dead]
    return lived, [Verdict(known[item["mutant"]][1], item["fate"], item["test"]) for item in dead]


def _some(module: Module, share: float, seed: int) -> Iterator[tuple[Module, Mutant]]:
    size = min(len(module.mutants), math.ceil(share * len(module.mutants)))
    chosen = random.Random(f"{seed} {module.name}").sample(module.mutants, size)
    return ((module, mutant) for mutant in chosen)


def _hunt(wanted: argparse.Namespace, chosen: list[tuple[Module, Mutant]], report: Report) -> str | None:
    root = Path(wanted.root)
    bar = Progress(
        TextColumn("mutants"),
        MofNCompleteColumn(),
        TextColumn("{task.fields[living]} live"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        auto_refresh=False,
    )
    with bar:
        task = bar.add_task("mutants", total=len(chosen), living=0)

        def told(verdict: Verdict) -> None:
            report.verdicts.append(verdict)
            bar.update(task, advance=1, living=len(report.tried) - report.killed)
            bar.refresh()
            if not verdict.killed:
                line = f"{len(report.verdicts)}: {verdict.fate}: {verdict.mutant.name}"
                bar.console.print(line, markup=False, highlight=False, soft_wrap=True)

        sources = [(root / folder).resolve() for folder in wanted.sources]
        hunt = Hunt(sources, [str(root / test) for test in wanted.tests], chosen, wanted.jobs, told)
        hunt.run()
    report.whole = report.whole and not hunt.interrupted
    return hunt.problem


def _show(report: Report, wanted: argparse.Namespace) -> None:
    if wanted.json:
        sys.stdout.write(json.dumps(report.as_dict(), indent=1, ensure_ascii=False) + "\n")
        return
    console = Console()
    console.print(report.table())
    for verdict in report.unlisted:
        console.print(f"{verdict.fate}: {verdict.mutant.name}", markup=False, highlight=False, soft_wrap=True)
    for line in report.summary():
        console.print(line, markup=False, highlight=False, soft_wrap=True)
