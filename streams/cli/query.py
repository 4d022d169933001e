"""`pml query`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pml.streams.cli.output import Json, note, print_json, print_table
from pml.streams.cli.session import load_settings, open_store
from pml.streams.printable import printable

if TYPE_CHECKING:
    from pml.clickhouse.client import Rows


def query(
    name_or_sql: Annotated[
        str | None, typer.Argument(metavar="NAME|SQL", help="A named query, or one statement that reads.")
    ] = None,
    *,
    rows: Annotated[int, typer.Option("--max-rows", min=1, max=1_000_000, help="More is an error.")] = 10_000,
    time_s: Annotated[float, typer.Option("--timeout", min=0.1, max=3600, help="Seconds it may take.")] = 30,
    csv: Annotated[bool, typer.Option("--csv", help="CSV with a header line.")] = False,
    json: Json = False,
) -> None:
    """Query ClickHouse, reading only and within limits; without an argument, list the named queries.

    Views: events, runs, tasks, speculations, traces.

    Examples: pml query waste · pml query 'SELECT status, count() FROM runs GROUP BY status' --json
    """
    from pml.clickhouse.client import Limits
    from pml.clickhouse.query import run_query

    if name_or_sql is None:
        _print_names(as_json=json)
        return
    with open_store(load_settings()) as store:
        found = run_query(store, name_or_sql, limits=Limits(rows=rows, time_s=time_s))
    if json:
        print_json(found.as_dicts())
    elif csv:
        print_csv(found)
    else:
        print_table(found.columns, found.rows)
        note(f"{len(found.rows)} rows")


def _print_names(*, as_json: bool) -> None:
    from pml.clickhouse.query import named_queries

    named = [
        {"name": q.name, "title": q.title, "description": q.description} for q in named_queries().values()
    ]
    if as_json:
        print_json(named)
    else:
        print_table(("query", "what it tells"), ((query["name"], query["title"]) for query in named))


def print_csv(found: Rows) -> None:
    """Rows as CSV: exact for a file or a program."""
    import csv

    writer = csv.writer(sys.stdout)
    rows = (found.columns, *found.rows)
    writer.writerows(map(_seen, rows) if sys.stdout.isatty() else rows)


def _seen(row: Sequence[Any]) -> list[Any]:
    """A row for a person: with all written out that is not seen."""
    return [printable(cell) if isinstance(cell, str) else cell for cell in row]
