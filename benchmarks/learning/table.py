"""What people get: a row for each data set and learner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

COLUMNS = {"hit_1": "hit@1", "hit_3": "hit@3", "mrr": "MRR", "brier": "Brier"}


def show(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    """The table, and below it what was visible to learners that read texts."""
    table = Table(title="next tool, by folds over groups", box=box.SIMPLE, pad_edge=False)
    for column in ("set (calls asked for, never seen)", "learner"):
        table.add_column(column)
    for column in COLUMNS.values():
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        _add(row, table)
    console.print(table)
    for row in rows:
        console.print(f"{row['name']}: visible was {row['visible']}", highlight=False)


def _add(row: Mapping[str, Any], table: Table) -> None:
    told = f"{row['name']} ({row['asked']:,}, {row['unseen']:.0%})"
    for name, found in row["ways"].items():
        mark = " *" if name == row["best_counting"] else ""
        table.add_row(told, name + mark, *(_cell(found[column]) for column in COLUMNS))
        told = ""
    if before := row["reached_before"]:
        table.add_row("", "best counting before", f"{before['hit_1']:.3f}", f"{before['hit_3']:.3f}", "", "")
    gains = {f"{name} − *": gain for name, gain in row["gains"].items()}
    if row["message_passing"]:
        gains["attention − its head"] = row["message_passing"]
    for told, gain in gains.items():
        low, high = gain["interval"]
        table.add_row("", told, f"{gain['hit_1']:+.3f} [{low:+.3f}, {high:+.3f}]", "", "", "")
    if row["wanted"]:
        serves = row["ways"][row["serves"]]
        cells = [_held(serves[name]["mean"], least) for name, least in row["wanted"].items()]
        table.add_row("", f"{row['serves']} serves; at least", *cells, "", "")
    table.add_section()


def _held(mean: float, least: float) -> str:
    return f"{least:.3f} {'held' if mean >= least else 'missed'}"


def _cell(found: Mapping[str, Any]) -> str:
    low, high = found["interval"]
    return f"{found['mean']:.3f} [{low:.3f}, {high:.3f}]"
