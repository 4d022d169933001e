"""`python -m benchmarks.end_to_end`: what prediction is worth to an agent, beside an oracle."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import orjson
import typer
from rich.console import Console

from benchmarks.datasets import VARIABLE, datasets_place
from benchmarks.end_to_end.measure import AT_HALF, SIDES, WHAT_IFS
from benchmarks.end_to_end.sets import ANSWER_S, ASKED_S, SETS, rows_of_sets
from benchmarks.end_to_end.table import show
from benchmarks.figures import Figure
from benchmarks.kept_rows import Row, in_order, kept_rows, measured_now
from benchmarks.learning.ways import ways_named
from benchmarks.machine import OthersWatch
from benchmarks.plan import Plan, planned
from benchmarks.report import Result
from pml.processors.learning.judging import FOLDS

NAME = "end_to_end"
SEED = 1
WIDE = 150
SESSIONS, SESSIONS_QUICK = 1_000, 20


def main(
    sets: Annotated[str, typer.Option(help="Only these sets, by name, with commas.")] = "",
    sessions: Annotated[
        int,
        typer.Option(min=1, help="How many of a fold are played at most; others than usual are not kept."),
    ] = SESSIONS,
    quick: Annotated[bool, typer.Option(help="Few sessions of each fold; keeps nothing.")] = False,
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
    measured: dict[str, Row] = {}
    with planned(NAME, FOLDS, seed) as plan:
        for row in rows_of_sets(folder, names, seed, most):
            measured[row["name"]] = measured_now(row)
            plan.say(f"{row['name']} is measured")
            if most == SESSIONS:
                kept = {**kept_rows(NAME, seed), **measured}
                _result(in_order(kept, SETS), plan, others, most).write()
        rows = in_order(measured, names)
        result = _result(rows, plan, others, most)
    if json:
        sys.stdout.buffer.write(orjson.dumps(result.as_dict()) + b"\n")
        return
    console = Console(width=None if sys.stdout.isatty() else WIDE)
    show(rows, console)
    console.print(
        f"seed {seed}, commit {result.commit}, {result.took_s:.0f} s, others took {result.others_share:.0%}",
        highlight=False,
    )


def _result(rows: Sequence[Row], plan: Plan, others: OthersWatch, most: int) -> Result:
    facts = {"asked_s": ASKED_S, "answer_s": ANSWER_S, "sessions_of_a_fold_most": most, "sets": rows}
    return Result.of(NAME, _figures(rows), plan, others, facts)


def _figures(rows: Sequence[Row]) -> list[Figure]:
    """Seconds with predictions beside those without."""
    return [
        Figure(f"{row['name']}: {side}", "s", (row[side]["wall_s"],), (row["unpredicted_s"],))
        for row in rows
        for side in (*SIDES, AT_HALF, *WHAT_IFS, "oracle")
    ]


if __name__ == "__main__":
    typer.run(main)
