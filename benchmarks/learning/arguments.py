"""`python -m benchmarks.learning.arguments`: how well the arguments of the next call are guessed."""

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
from benchmarks.learning.argument_measure import FOLDS, SURE, judged, row_of
from benchmarks.learning.argument_sets import argument_set
from benchmarks.machine import OthersWatch
from benchmarks.plan import planned
from benchmarks.report import Result

NAME = "arguments"
SEED = 1
WIDE = 170
# All required arguments known to an oracle, and right in the best guess, as throw-away code reached it
# (PREDICTION.md); its oracle had other sources, so the columns are near, not the same.
REACHED: Mapping[str, tuple[float, float]] = {
    "toollinkos": (1.00, 0.963),
    "bfcl_multi_turn, own turn": (0.733, 0.608),
    "bfcl_multi_turn": (0.578, 0.497),
    "nestful": (0.903, 0.524),
    "api_bank": (0.602, 0.409),
    "api_bank, all turns": (0.602, 0.409),
    "tau": (0.410, 0.338),
    "tau_sessions": (0.631, 0.097),
    "n8n": (0.908, 0.431),
    "galaxy_iwc": (1.00, 0.244),
}


def main(
    sets: Annotated[str, typer.Option(help="Only sets that begin so, with commas; keeps nothing.")] = "",
    seed: Annotated[int, typer.Option(min=0, help="What folds and resamples are drawn with.")] = SEED,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of the table.")] = False,
) -> None:
    """Measure argument sources on the data sets that PML_DATASETS names.

    Exit code 0 whatever the figures are.

    Examples: python -m benchmarks.learning.arguments · python -m benchmarks.learning.arguments --sets tau,n8n
    """
    folder = datasets_place()
    if folder is None:
        raise SystemExit(f"{VARIABLE} names no folder: the data sets are needed")
    names = [name for name in REACHED if name.startswith(tuple(sets.split(",")))]
    others, rows = OthersWatch(), []
    with planned(NAME, FOLDS, seed) as plan, Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task(NAME, total=len(names) * FOLDS)
        for name in names:
            progress.update(task, description=name)
            data = argument_set(folder, name)
            found, groups = judged(data, seed, lambda: progress.advance(task))
            rows.append(row_of(data, found, groups, seed))
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
    """The best guess beside the latest value of the same name, where that is right at all."""
    return [
        Figure(row["name"], "all required right", (row["top_1"]["mean"],), (row["same_name"]["mean"],))
        for row in rows
        if row["same_name"]["mean"] > 0
    ]


def _show(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    table = Table(title="arguments of the next call, its tool being known", box=box.SIMPLE, pad_edge=False)
    table.add_column("set (calls)")
    for column in (
        "oracle",
        "before",
        "same name",
        "best",
        "before",
        "best 3",
        "all right",
        "best 3",
        "Brier",
    ):
        table.add_column(column, justify="right", no_wrap=True)
    for least in SURE:
        table.add_column(f"sure {least}: share, right", justify="right", no_wrap=True)
    for row in rows:
        oracle, best = (f"{value:.3f}" for value in REACHED[row["name"]])
        sure = [f"{each['share']:.3f} {each['right']:.3f}" for each in row["sure"].values()]
        told = (row["oracle"], oracle, row["same_name"], row["top_1"], best, row["top_3"])
        cells = [each if isinstance(each, str) else _cell(each) for each in told]
        exact = (_cell(row["exact_1"]), f"{row['exact_3']['mean']:.3f}", f"{row['brier']:.3f}")
        table.add_row(f"{row['name']} ({row['asked']:,})", *cells, *exact, *sure)
    console.print(table)
    for row in rows:
        console.print(f"{row['name']}: visible was {row['visible']}", highlight=False)


def _cell(found: Mapping[str, Any]) -> str:
    low, high = found["interval"]
    return f"{found['mean']:.3f} [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    typer.run(main)
