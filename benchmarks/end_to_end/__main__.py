"""`python -m benchmarks.end_to_end`: what prediction is worth to an agent, beside an oracle."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console

from benchmarks.datasets import VARIABLE, datasets_place
from benchmarks.end_to_end.modelled import NAME, SESSIONS, measured, result
from benchmarks.end_to_end.sets import SETS
from benchmarks.end_to_end.table import show
from benchmarks.kept_rows import in_order
from benchmarks.learning.ways import ways_named
from benchmarks.machine import OthersWatch
from benchmarks.plan import planned
from pml.processors.learning.judging import FOLDS

SEED = 1
WIDE = 150
SESSIONS_QUICK = 20


def main(
    *,
    sets: Annotated[str, typer.Option(help="Only these sets, by name, with commas.")] = "",
    sessions: Annotated[
        int,
        typer.Option(min=1, help="How many of a fold are played at most; others than usual are not kept."),
    ] = SESSIONS,
    quick: Annotated[bool, typer.Option(help="Few sessions of each fold; keeps nothing.")] = False,
    models: Annotated[
        Path | None,
        typer.Option(help="A folder in which models stay, for this command or `live` on the same commit."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of folds, times and learners.")] = SEED,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of the table.")] = False,
) -> None:
    """Play the sessions of the data sets that PML_DATASETS names, on a modelled clock.

    Each set is kept as soon as it is measured; sets that are left out stay as they were.
    Exit code 0 whatever the figures are.

    Examples: python -m benchmarks.end_to_end · python -m benchmarks.end_to_end --sets nestful --quick
    """
    folder, names = datasets_place(), ways_named(sets, SETS)
    if folder is None:
        raise SystemExit(f"{VARIABLE} names no folder: the data sets are needed")
    others, most = OthersWatch(), SESSIONS_QUICK if quick else sessions
    with planned(NAME, FOLDS, seed) as plan:
        told = measured(folder, names, plan, others, most=most, models=models)
        rows = in_order({rehearsal.name: row for rehearsal, row in told}, names)
        found = result(rows, plan, others, most)
    if json:
        sys.stdout.buffer.write(orjson.dumps(found.as_dict()) + b"\n")
        return
    console = Console(width=None if sys.stdout.isatty() else WIDE)
    show(rows, console)
    console.print(
        f"seed {seed}, commit {found.commit}, {found.took_s:.0f} s, others took {found.others_share:.0%}",
        highlight=False,
    )


if __name__ == "__main__":
    typer.run(main)
