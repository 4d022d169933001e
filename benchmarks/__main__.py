"""`python -m benchmarks [NAME …]`: measure, print the ratios, keep them under benchmarks/results."""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated

import orjson
import typer
import uvloop
from rich.console import Console

from benchmarks.figures import Figure
from benchmarks.machine import OthersWatch, commit, describe
from benchmarks.plan import Benchmark, Plan
from benchmarks.report import Result, show
from pml.schemas.errors import PMLError

NAMES = ("projection", "step", "hop")
ROUNDS = 5
SEED = 1
# Where nobody looks at a terminal.
WIDTH = 110


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
    others, began = OthersWatch(), time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="pml-bench-", ignore_cleanup_errors=True) as folder:
        figures = _measured(benchmark, Plan(rounds, seed, Path(folder), _say(name)))
    result = Result(
        name=name,
        figures=tuple(figures),
        rounds=rounds,
        seed=seed,
        commit=commit(),
        machine=describe(),
        others_share=others.share(),
        took_s=time.perf_counter() - began,
    )
    result.write()
    return result


def _measured(benchmark: Benchmark, plan: Plan) -> Sequence[Figure]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(benchmark(plan))


def _say(name: str) -> Callable[[str], None]:
    console = Console(stderr=True, highlight=False)
    return lambda text: console.print(f"[dim]{name}:[/] {text}")


if __name__ == "__main__":
    typer.run(main)
