"""What people get: a row for each data set and way to rank, then the differences and the times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

COLUMNS = ("recall_1", "recall_5", "recall_10", "ndcg_10")


def show(facts: Mapping[str, Any], console: Console) -> None:
    """The tables of one run."""
    _show_sets(facts, console)
    for name, found in facts["mean"]["differences"].items():
        low, high = found["interval"]
        console.print(
            f"mean NDCG@10, {name}: {found['mean']:+.3f} [{low:+.3f}, {high:+.3f}]", highlight=False
        )
    if "latency" in facts:
        _show_times(facts, console)


def _show_sets(facts: Mapping[str, Any], console: Console) -> None:
    table = Table(title="intent → tools, by folds over groups", box=box.SIMPLE, pad_edge=False)
    for column in ("set (tools, intents, groups)", "way"):
        table.add_column(column)
    for column in ("R@1", "R@5", "R@10", "NDCG@10"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in facts["sets"]:
        told = f"{row['name']} ({row['documents']}, {row['cases']}, {row['groups']})"
        for name, means in row["ways"].items():
            table.add_row(told, name, *(f"{means[column]:.3f}" for column in COLUMNS))
            told = ""
        for name, found in row["differences"].items():
            low, high = found["interval"]
            table.add_row(
                "", f"{name} − fused", "", "", "", f"{found['mean']:+.3f} [{low:+.3f}, {high:+.3f}]"
            )
        table.add_section()
    for name, mean in facts["mean"]["ndcg_10"].items():
        table.add_row("mean of the sets", name, "", "", "", f"{mean:.3f}")
    console.print(table)


def _show_times(facts: Mapping[str, Any], console: Console) -> None:
    found = facts["latency"]
    console.print(
        f"a query of {found['documents']:,} tools with its embedding: p50 {found['p50_ms']:.1f} ms, "
        f"p99 {found['p99_ms']:.1f} ms; built in {found['built_s']:.1f} s",
        highlight=False,
    )
    table = Table(title="comparing with all, or a graph", box=box.SIMPLE, pad_edge=False)
    for column in ("documents", "exact p50 / p99 ms", "graph p50 / p99 ms", "shared of the first ten"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in facts["crossover"]:
        times = (f"{row[way]['p50_ms']:.2f} / {row[way]['p99_ms']:.2f}" for way in ("exact", "graph"))
        table.add_row(f"{row['documents']:,}", *times, f"{row['shared']:.3f}")
    console.print(table)
