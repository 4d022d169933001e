"""`python -m benchmarks.end_to_end.live`: the modelled clock beside real stacks, over the same sessions.

Agents call recorded tools through the proxy, thinking before every call, on three stacks on one broker and
one store: one predicts nothing, one predicts by the best baseline, and one by the model that `pml train` made
of other sessions. The clock is given what the same models answer to the same questions, by the code that
serves. Sessions of each fold are played so, one fold after another, with what learned of the others; before
any stack starts, all models have learned, and the clock has chosen thresholds.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
import uvloop
from rich.console import Console

from benchmarks.datasets import VARIABLE, datasets_place
from benchmarks.end_to_end import table
from benchmarks.end_to_end.live_table import Fold, row_of, show
from benchmarks.end_to_end.modelled import SESSIONS as MODELLED
from benchmarks.end_to_end.modelled import measured
from benchmarks.end_to_end.models import SIDES
from benchmarks.end_to_end.play import play_of
from benchmarks.end_to_end.sets import SETS, Rehearsal
from benchmarks.end_to_end.stacks import AT_ONCE, NOTHING, Staged, measure
from benchmarks.figures import Figure
from benchmarks.kept_rows import Row, in_order, kept_rows, measured_now
from benchmarks.learning.ways import WAYS, ways_named
from benchmarks.machine import OthersWatch
from benchmarks.plan import Plan, planned
from benchmarks.report import Result
from pml.processors.learning.judging import FOLDS
from pml.schemas.errors import PMLError
from pml.streams.logs import silence_libraries

NAME = "end_to_end_live"
WIDE = 150
SESSIONS, SEED = 120, 1


def main(
    *,
    sets: Annotated[str, typer.Option(help="Only these sets, by name, with commas.")] = "",
    sessions: Annotated[
        int,
        typer.Option(min=FOLDS, help="How many of a set are played at most; fewer than usual are not kept."),
    ] = SESSIONS,
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="The confidence at which calls begin (nothing is kept then); else what the clock chose.",
        ),
    ] = None,
    models: Annotated[
        Path | None,
        typer.Option(help="A folder in which models stay, for another time on the same commit."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of folds, times and learners.")] = SEED,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of the table.")] = False,
) -> None:
    """Play recorded sessions on real stacks and on the modelled clock, with predictions and without.

    Each set is kept as soon as it is measured; sets that are left out stay as they were.
    Exit code 0 whatever the figures are.

    Examples: python -m benchmarks.end_to_end.live · python -m benchmarks.end_to_end.live --sets nestful
    """
    silence_libraries()
    folder, names = datasets_place(), ways_named(sets, SETS)
    if folder is None:
        raise SystemExit(f"{VARIABLE} names no folder: the data sets are needed")
    others, found = OthersWatch(), dict[str, Row]()
    with planned(NAME, FOLDS, seed) as plan:
        # To the end, before a stack starts: nothing learns beside what is measured.
        told = {
            each.name: (each, row)
            for each, row in measured(folder, names, plan, others, most=MODELLED, models=models)
        }
        for name in names:
            staged = _staged(folder, told[name][0], seed, sessions // FOLDS, threshold)
            row = row_of(_measured(plan, name, staged))
            found[name] = measured_now({**_about(name), "at_once": AT_ONCE, **row})
            if sessions >= SESSIONS and threshold is None:
                kept = {**kept_rows(NAME, seed), **found}
                _result(in_order(kept, SETS), plan, others).write()
        result = _result(in_order(found, names), plan, others)
    if json:
        sys.stdout.buffer.write(orjson.dumps(result.as_dict()) + b"\n")
        return
    console = Console(width=None if sys.stdout.isatty() else WIDE)
    table.show([told[name][1] for name in names], console)
    show(result.facts["sets"], console)


def _about(name: str) -> dict[str, Any]:
    return {"name": name, "visible": WAYS[name].visible.told}


def _staged(data: Path, rehearsal: Rehearsal, seed: int, most: int, given_one: float | None) -> list[Staged]:
    """Sessions of each fold, with the threshold that is given, or what is chosen for each on the others."""
    chosen, staged = rehearsal.thresholds, []
    for number, held in enumerate(rehearsal.folds):
        play = play_of(data, rehearsal.name, seed, most, number)
        # Nobody can set more than 1, which says as well that nothing begins.
        thresholds = {
            side: min(1.0, chosen[side][number]) if given_one is None else given_one for side in SIDES
        }
        staged.append(Staged(play, held, thresholds, rehearsal.models))
    return staged


def _result(rows: Sequence[Row], plan: Plan, others: OthersWatch) -> Result:
    figures = [
        Figure(f"{row['name']}: {side}, {where}", "s", (row[side][where]["wall_s"],), (row[NOTHING][where],))
        for row in rows
        for side in SIDES
        for where in ("stack", "clock")
    ]
    return Result.of(NAME, figures, plan, others, {"sets": rows})


def _measured(plan: Plan, name: str, staged: Sequence[Staged]) -> list[Fold]:
    """All folds of a set.

    Raises:
        SystemExit: they cannot be measured; what a person is told of it.
    """
    # A broker takes a folder with a comma for two.
    own = replace(plan, folder=plan.folder / f"stacks-{SETS.index(name)}")
    own.folder.mkdir(parents=True)
    try:
        found: list[Fold] = uvloop.run(measure(own, name, staged))
    except (PMLError, ExceptionGroup) as error:
        raise _told(error) from None
    return found


def _told(error: Exception) -> BaseException:
    """Task groups of clients wrap what happened inside them."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return SystemExit(f"{error.code}: {error.message}") if isinstance(error, PMLError) else error


if __name__ == "__main__":
    typer.run(main)
