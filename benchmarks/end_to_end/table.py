"""The table of what prediction is worth, and where the rest of it is lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.end_to_end.measure import AT_HALF, LOSSES, WHAT_IFS
from benchmarks.end_to_end.models import RANKER, SIDES
from benchmarks.end_to_end.thresholds import WASTE_MOST

# Our share of what the oracle gains that is to be reached; of n8n how much longer it may take.
FLOORS: Mapping[str, float] = {
    "toollinkos": 0.70,
    "bfcl_multi_turn, own turn": 0.35,
    "nestful": 0.25,
    "api_bank, all turns": 0.20,
}
# Where nothing can be gained, so much longer it may take.
NO_LONGER = ("n8n",)
LONGER_MOST = 1.03


def show(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    """A line for each set and side, with the floors; below it the losses."""
    console.print(_worth(rows))
    console.print(_lost(rows))
    for row in rows:
        console.print(f"{row['name']}: visible was {row['visible']}", highlight=False)


def held(row: Mapping[str, Any]) -> bool:
    """Whether the ranker reaches what it must on a set, at no more waste than it may."""
    ranker = row[RANKER]
    if row["name"] in NO_LONGER:
        return bool(ranker["times_as_long"] <= LONGER_MOST)
    share, waste = ranker["share_of_oracle"], ranker["waste"]
    sparing = waste is not None and waste <= WASTE_MOST
    return sparing and share is not None and share >= FLOORS[row["name"]]


def _worth(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(title="an agent's wall clock with predictions", box=box.SIMPLE, pad_edge=False)
    for column in ("set (sessions, calls, may run early)", "predicted by"):
        table.add_column(column)
    for column in (
        "wall ÷ without",
        "begun",
        "hits",
        "hit rate",
        "waste",
        "of the oracle's gain",
        "floor",
        "",
    ):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        name = f"{row['name']} ({row['sessions']:,}, {row['calls']:,}, {row['may_run_early']:,})"
        for side in (*SIDES, AT_HALF, *WHAT_IFS, "oracle"):
            told = row[side]
            aimed = side == RANKER and row["name"] in (*FLOORS, *NO_LONGER)
            floor = (*_floor(row["name"]), _mark(row)) if aimed else ("", "")
            table.add_row(name, side, *cells(told), *floor)
            name = ""
    return table


def cells(told: Mapping[str, Any]) -> tuple[str, ...]:
    """What `Scale.told` says of an account, from how many times as long it took to its share of the gain."""
    waste, share = told["waste"], told["share_of_oracle"]
    return (
        f"{told['times_as_long']:.3f}",
        f"{told['begun']:,}",
        f"{told['hits']:,}",
        f"{told['hit_rate']:.2f}",
        "all" if waste is None else f"{waste:.2f}",
        "" if share is None else f"{share:.2f}",
    )


def _floor(name: str) -> tuple[str]:
    return (f"≥ {FLOORS[name]:.2f}" if name in FLOORS else f"wall ≤ {LONGER_MOST}",)


def _mark(row: Mapping[str, Any]) -> str:
    return "[green]held[/]" if held(row) else "[bold red]NOT HELD[/]"


def _lost(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(title="the ranker: of the calls that may run early", box=box.SIMPLE, pad_edge=False)
    table.add_column("set")
    for column in LOSSES:
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(row["name"], *(f"{row[RANKER]['lost'][loss]:.2f}" for loss in LOSSES))
    return table
