"""`python -m benchmarks.speculation`: what speculation is worth, beside what nobody could beat."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import orjson
import typer
import uvloop
from rich.console import Console

from benchmarks.machine import OthersWatch
from benchmarks.plan import planned
from benchmarks.report import WIDTH, Result, show
from benchmarks.speculation.measure import QUICK, WHOLE, measure
from benchmarks.speculation.table import show_rows
from pml.schemas.errors import PMLError

NAME = "speculation"
ROUNDS, QUICK_ROUNDS = 5, 1
SEED = 1


def main(
    rounds: Annotated[int | None, typer.Option(min=1, max=100, help="Rounds, all sides in each.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="What workflows and times are drawn with.")] = SEED,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few workflows and one round: to develop with.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of the tables.")] = False,
) -> None:
    """Measure speculation on the workflows that PML_DATASETS names.

    Exit code 0 also where a figure does not hold what it must: the tables say so. A quick run keeps nothing.

    Examples: python -m benchmarks.speculation · python -m benchmarks.speculation --quick
    """
    logging.disable(logging.WARNING)  # clients tell of every topic that is being made
    others = OthersWatch()
    try:
        with planned(NAME, rounds or (QUICK_ROUNDS if quick else ROUNDS), seed) as plan:
            found = uvloop.run(measure(plan, QUICK if quick else WHOLE))
            facts = found.facts | {"rows": [row.as_dict() for row in found.rows]}
            figures = [*(row.figure for row in found.rows), *found.figures]
            result = Result.of(NAME, figures, plan, others, facts)
    except PMLError as error:
        raise SystemExit(f"{error.code}: {error.message}") from None
    if not quick:
        result.write()
    if json:
        sys.stdout.buffer.write(orjson.dumps(result.as_dict()) + b"\n")
        return
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    show_rows(result.as_dict()["facts"], console)
    show([result.only(figure.name for figure in found.figures)], console)


if __name__ == "__main__":
    typer.run(main)
