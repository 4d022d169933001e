"""`python -m benchmarks.learning.feasibility`: which candidates can be called, and whether that says more."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import orjson
import typer
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.datasets import VARIABLE, datasets_place
from benchmarks.figures import Figure
from benchmarks.learning.argument_sets import argument_set
from benchmarks.learning.feasibility_measure import FOLDS, WAYS, answered, row_of, without_text
from benchmarks.machine import OthersWatch
from benchmarks.plan import planned
from benchmarks.report import Result
from pml.streams.discovery.wordllama_embedding import WordLlamaEmbedding
from pml.streams.learning.data_sets import recorded

NAME = "feasibility"
SEED = 1
WIDE = 170
# Those that say what their tools take.
SETS = ("toollinkos", "bfcl_multi_turn", "nestful", "api_bank")
# Each is read with the text that a client could have passed, and without.
READINGS = 2
SIDES = ("without", "with")


def main(
    sets: Annotated[str, typer.Option(help="Only these sets, with commas; keeps nothing.")] = "",
    seed: Annotated[int, typer.Option(min=0, help="What folds and resamples are drawn with.")] = SEED,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of the table.")] = False,
) -> None:
    """Measure the feasibility of candidates on the data sets that PML_DATASETS names.

    Exit code 0 whatever the figures are.

    Examples: python -m benchmarks.learning.feasibility --sets nestful
    """
    folder = datasets_place()
    if folder is None:
        raise SystemExit(f"{VARIABLE} names no folder: the data sets are needed")
    names = [name for name in SETS if not sets or name in sets.split(",")]
    others, rows, embedding = OthersWatch(), [], WordLlamaEmbedding()
    with planned(NAME, FOLDS, seed) as plan, Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task(NAME, total=len(names) * FOLDS * READINGS)
        for name in names:
            progress.update(task, description=name)
            known = argument_set(folder, name), recorded(folder, name).sessions
            for data, sessions in (known, without_text(*known)):
                found = answered(data, sessions, embedding, seed, lambda: progress.advance(task))
                rows.append(row_of(name, data.visible, found, seed))
        result = Result.of(NAME, _figures(rows), plan, others, {"sets": rows})
    if not sets:
        result.write()
    if json:
        sys.stdout.buffer.write(orjson.dumps(result.as_dict()) + b"\n")
        return
    console = Console(width=None if sys.stdout.isatty() else WIDE)
    _show(rows, console)
    console.print(
        f"seed {seed}, commit {result.commit}, {result.took_s:.0f} s, others took {result.others_share:.0%}",
        highlight=False,
    )


def _figures(rows: Sequence[Mapping[str, Any]]) -> list[Figure]:
    """Milliseconds from candidates to an answer, with feasibility beside without."""
    return [
        Figure(f"{row['name']}, visible: {row['visible']}", "ms", (row["with_ms"],), (row["without_ms"],))
        for row in rows
    ]


def _show(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    table = Table(title="candidates that cannot be called", box=box.SIMPLE, pad_edge=False)
    for column in ("set (questions)", "visible"):
        table.add_column(column)
    shares = ("lacking", "lacking_of_first", "infeasible", "lacking_of_what_came", "hit_1", "hit_3")
    gains = [(way, hit) for way in WAYS for hit in ("hit_1", "hit_3")]
    columns = [*shares, *(f"{way} {hit}" for way, hit in gains), "without ms", "with ms"]
    for column in columns:
        table.add_column(column.replace("_", " "), justify="right")
    for row in rows:
        told = [_gain(row["gains"][way][hit]) for way, hit in gains]
        cells = [f"{row[name]:.4f}" for name in shares] + told + [str(row[f"{side}_ms"]) for side in SIDES]
        table.add_row(f"{row['name']} ({row['asked']:,})", row["visible"], *cells)
    console.print(table)


def _gain(found: Mapping[str, Any]) -> str:
    low, high = found["interval"]
    return f"{found['mean']:+.4f} [{low:+.4f}, {high:+.4f}]"


if __name__ == "__main__":
    typer.run(main)
