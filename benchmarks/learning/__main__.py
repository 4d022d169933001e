"""`python -m benchmarks.learning`: how well the next tool is predicted, learner beside learner."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.progress import Progress

from benchmarks.datasets import VARIABLE, datasets_place
from benchmarks.figures import Bound, Figure
from benchmarks.kept_rows import Row, in_order, kept_rows, measured_now
from benchmarks.learning.measure import measure, row_of
from benchmarks.learning.table import COLUMNS, show
from benchmarks.learning.ways import WAYS, ways_named
from benchmarks.machine import OthersWatch
from benchmarks.plan import planned
from benchmarks.report import Result
from pml.processors.learning.judging import FOLDS
from pml.processors.learning.learners import LEARNERS
from pml.streams.discovery.wordllama_embedding import WordLlamaEmbedding

NAME = "learning"
SEED = 1
BASELINE = "popularity"
# Each figure with its interval.
WIDE = 150


def main(
    sets: Annotated[str, typer.Option(help="Only these sets, by name, with commas.")] = "",
    seed: Annotated[int, typer.Option(min=0, help="What folds and resamples are drawn with.")] = SEED,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of the table.")] = False,
) -> None:
    """Measure next-tool prediction on the data sets that PML_DATASETS names.

    Each set is kept as soon as it is measured; sets that are left out stay as they were.
    Exit code 0 whatever the figures are.

    Examples: python -m benchmarks.learning · python -m benchmarks.learning --sets n8n,nestful --json
    """
    folder, names = datasets_place(), ways_named(sets, WAYS)
    if folder is None:
        raise SystemExit(f"{VARIABLE} names no folder: the data sets are needed")
    others, measured = OthersWatch(), dict[str, Row]()
    with planned(NAME, FOLDS, seed) as plan:
        for row in _rows(folder, names, seed):
            measured[row["name"]] = measured_now(row)
            kept = in_order({**kept_rows(NAME, seed), **measured}, list(WAYS))
            Result.of(NAME, _figures(kept), plan, others, {"sets": kept}).write()
        rows = in_order(measured, names)
        result = Result.of(NAME, _figures(rows), plan, others, {"sets": rows})
    if json:
        sys.stdout.buffer.write(orjson.dumps(result.as_dict()) + b"\n")
        return
    console = Console(width=None if sys.stdout.isatty() else WIDE)
    show(rows, console)
    console.print(
        f"seed {seed}, commit {result.commit}, {result.took_s:.0f} s, others took {result.others_share:.0%}",
        highlight=False,
    )


def _rows(folder: Path, names: Sequence[str], seed: int) -> Iterator[Row]:
    embedding = WordLlamaEmbedding()
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task(NAME, total=len(names) * FOLDS * len(LEARNERS))
        for name in names:
            progress.update(task, description=name)
            found = measure(folder, name, embedding, seed, lambda learner: progress.advance(task))
            yield row_of(found, seed)


def _figures(rows: Sequence[Row]) -> list[Figure]:
    """hit@1 of each learner beside that of popularity, where that is right at all; then what is aimed at."""
    figures = []
    for row in rows:
        hits = {name: found["hit_1"]["mean"] for name, found in row["ways"].items()}
        if hits[BASELINE] > 0:
            figures += [
                Figure(f"{row['name']}: {name}", "hit@1", (hits[name],), (hits[BASELINE],))
                for name in LEARNERS
                # A row that was kept earlier may know fewer.
                if name != BASELINE and name in hits
            ]
        figures += _aimed_at(row)
    return figures


def _aimed_at(row: Row) -> list[Figure]:
    """hit@1 and hit@3 of what serves beside what they are to be at least."""
    return [
        Figure(
            f"{row['name']}: {COLUMNS[name]} of what serves",
            COLUMNS[name],
            (row["ways"][row["serves"]][name]["mean"],),
            (wanted,),
            Bound("at least", 1.0),
        )
        for name, wanted in (row["wanted"] or {}).items()
    ]


if __name__ == "__main__":
    typer.run(main)
