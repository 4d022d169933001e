"""`python -m benchmarks [NAME …]`: measure, print the ratios, keep them under benchmarks/results."""

from __future__ import annotations

import logging
import sys
from importlib import import_module
from typing import Annotated

import orjson
import typer
import uvloop
from rich.console import Console

from benchmarks.machine import OthersWatch
from benchmarks.plan import Benchmark, planned
from benchmarks.report import WIDTH, Result, show
from pml.schemas.errors import PMLError

NAMES = (
    "projection",
    "replay",
    "step",
    "hop",
    "backlog",
    "proxy",
    "prediction",
    "retraining",
    "sink",
    "state",
    "memory",
    "takeover",
)
ROUNDS = 5
SEED = 1


def main(
    names: Annotated[
        list[str] | None, typer.Argument(help=f"Which: {', '.join(NAMES)}; all if none.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of the table.")] = False,
    rounds: Annotated[int, typer.Option(min=1, max=100, help="Rounds, both sides in each.")] = ROUNDS,
    seed: Annotated[int, typer.Option(min=0, help="What workloads and arrivals are drawn with.")] = SEED,
) -> None:
    """Measure PML beside baselines in the same run.

    Exit code 0 also where a ratio does not hold what it must: the table says so.

    Examples: python -m benchmarks · python -m benchmarks step --rounds 3
    """
    unknown = sorted(set(names or ()) - set(NAMES))
    if unknown:
        raise typer.BadParameter(f"there is no benchmark {unknown[0]!r}; there are {', '.join(NAMES)}")
    logging.disable(logging.WARNING)  # clients tell of every topic that is being made
    try:
        results = [run(name, rounds, seed) for name in names or NAMES]
    except PMLError as error:
        raise SystemExit(f"{error.code}: {error.message}") from None
    if json:
        sys.stdout.buffer.write(orjson.dumps([result.as_dict() for result in results]) + b"\n")
    else:
        show(results, Console(width=None if sys.stdout.isatty() else WIDTH))


def run(name: str, rounds: int, seed: int) -> Result:
    """Measure one benchmark and keep its result."""
    benchmark: Benchmark = import_module(f"benchmarks.{name}").measure
    others = OthersWatch()
    with planned(name, rounds, seed) as plan:
        result = Result.of(name, uvloop.run(benchmark(plan)), plan, others)
    result.write()
    return result


if __name__ == "__main__":
    typer.run(main)
