"""The rows for people."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

HELD = {True: "[green]held[/]", False: "[bold red]NOT HELD[/]", None: ""}
COLUMNS = ("times as fast", "min–max", "bound", "of bound", "hits", "early", "wasted", "")


def show_rows(facts: Mapping[str, Any], console: Console) -> None:
    """A table for each side and baseline; below them what was played."""
    for head, rows in groupby(facts["rows"], key=_head):
        table = Table(title=head, title_justify="left", box=box.SIMPLE, pad_edge=False)
        table.add_column("data set", min_width=12)
        for column in COLUMNS:
            table.add_column(column, justify="right", no_wrap=True, min_width=len(column) + 2)
        for row in rows:
            table.add_row(row["dataset"], *cells(row), HELD[row["held"]])
        console.print(table)
    for line in footnotes(facts):
        console.print(line, highlight=False, soft_wrap=True)


def _head(row: Mapping[str, Any]) -> str:
    return f"{row['regime']}: {row['side']} ÷ {row['baseline']}"


def footnotes(facts: Mapping[str, Any]) -> list[str]:
    """What was played, and how busy that kept the machine."""
    played = ", ".join(
        f"{name} {each['played']} and {each['played_with_decisions']} of {each['workflows']} "
        f"({each['unsafe_share']:.0%} of calls unsafe)"
        for name, each in facts["datasets"].items()
    )
    shares = ", ".join(f"{name} {share:.0%}" for name, share in facts["cpu_share"].items())
    return [
        f"played, {scope_of(facts)}: {played}",
        f"our share of all cores at most: {shares}",
    ]


def scope_of(facts: Mapping[str, Any]) -> str:
    """Which workflows were drawn from."""
    tools, decisions = (facts["limits"][name] for name in ("tools", "decisions"))
    return (
        f"of those with 2–{tools['layers']} layers and at most {tools['tasks']} tasks (with decisions "
        f"2–{decisions['layers']} and {decisions['tasks']})"
    )


def cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The figures of a row as text."""
    return (
        f"{row['times']:.2f}",
        f"{row['times_min']:.2f}–{row['times_max']:.2f}",
        f"{row['bound']:.2f}",
        f"{row['of_bound']:.3f}",
        *(_percent(row[name]) for name in ("hit_rate", "early_share", "wasted_of_useful")),
    )


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"
