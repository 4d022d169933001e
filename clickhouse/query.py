"""The named queries of this release, and any SQL that only reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from pml.clickhouse.client import Limits, Rows, Store
from pml.schemas.errors import QueryError

_NAME = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """A query of `queries/*.sql`; `title` is the first line of its comment, `description` all of it."""

    name: str
    title: str
    description: str
    sql: str


def named_queries() -> dict[str, NamedQuery]:
    """All named queries, by name."""
    folder = files("pml.clickhouse") / "queries"
    found = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name
    )
    return {file.name[:-4]: _loaded(file.name[:-4], file.read_text("utf-8")) for file in found}


def run_query(
    store: Store, name_or_sql: str, parameters: Mapping[str, Any] | None = None, limits: Limits | None = None
) -> Rows:
    """Run a named query, or SQL; either only reads, and within limits.

    Raises:
        QueryError: no query has that name, or ClickHouse refuses the SQL.
        StoreUnavailable
    """
    return store.query(_sql(name_or_sql.strip()), parameters, limits)


def _sql(name_or_sql: str) -> str:
    if not _NAME.fullmatch(name_or_sql):
        return name_or_sql
    known = named_queries()
    query = known.get(name_or_sql.replace("-", "_"))
    if query is None:
        raise QueryError(f"There is no query {name_or_sql!r}. There are: {', '.join(known)}; or give SQL.")
    return query.sql


def _loaded(name: str, text: str) -> NamedQuery:
    lines = [line[2:].strip() for line in text.splitlines() if line.startswith("--")]
    return NamedQuery(name, lines[0], "\n".join(lines).strip(), text)
