"""The views and queries of the documentation, on a real store."""

from __future__ import annotations

import re

import pytest

from pml.clickhouse.client import Store
from pml.clickhouse.query import named_queries, run_query
from tests.docs import pages

pytestmark = pytest.mark.integration
PAGE = "docs/reference/clickhouse.md"


@pytest.fixture
def store(migrated_store: Store) -> Store:
    """The tables and views of this release, without rows."""
    return migrated_store


def test_views_and_their_columns(store: Store) -> None:
    rows = store.query(
        "SELECT table, groupArray(name) FROM (SELECT table, name FROM system.columns "
        "WHERE database = {name:String} ORDER BY table, position) GROUP BY table",
        {"name": store.address.database},
    ).rows
    views = {table: columns for table, columns in rows if not _is_inner(table)}
    documented = {
        pages.codes(row["view"])[0]: pages.codes(row["columns"]) for row in pages.table(PAGE, "view")
    }
    assert documented == views


def _is_inner(table: str) -> bool:
    return table.endswith(("_raw", "_from_events")) or table in {"migrations", "trace_priorities"}


def test_named_queries() -> None:
    documented = {pages.codes(row["query"])[0] for row in pages.table(PAGE, "query")}
    assert documented == set(named_queries())


def test_every_query_that_is_shown_runs(store: Store) -> None:
    shown = [block for name in pages.NAMES for block in pages.blocks(name, "sql")]
    shown += [
        words[2]
        for name in pages.NAMES
        for words in pages.console_commands(name)
        if words[1] == "query" and len(words) > 2
    ]
    assert len(shown) > 10
    for query in shown:
        assert run_query(store, query).columns, query


def test_the_tuple_of_task_results(store: Store) -> None:
    kind = store.query(
        "SELECT type FROM system.columns "
        "WHERE database = {name:String} AND table = 'traces' AND name = 'task_results'",
        {"name": store.address.database},
    ).rows[0][0]
    fields = re.findall(r"(\w+) \w+[,)]", kind)
    line = re.search(r"`task_results` is an array of tuples \(([^)]+)\)", pages.read(PAGE))
    assert line is not None
    assert pages.codes(line.group(1)) == fields
