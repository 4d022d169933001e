"""What ClickHouse derives from the stored events, beside what its views make of them now, for a replay."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from pml.clickhouse.client import Limits, Store
from pml.clickhouse.expiry import NOTHING, Expired, expires_of
from pml.clickhouse.rows import EVENTS_TABLE

# Of both sides so many rows are in memory at once.
WINDOW_OFFSETS = 50_000
_LIMITS = Limits(time_s=300.0, memory_bytes=4 << 30)
_TARGET = re.compile(r"\bTO (?:`?\w+`?\.)?`?(\w+)`?")
_NAMED_TIME = re.compile(r"\boccurred_at AS (\w+)")
# A row that expires while both sides are read is on neither: each asks the clock for itself.
_EXPIRING = "INTERVAL 1 MINUTE"
_KEY = ("partition", "log_offset")


@dataclass(frozen=True, slots=True)
class View:
    """A materialized view over the events.

    `table` is what it fills, `columns` are those of its `query`, `occurred` is the one that has the time of
    the event, `expires` is when a row may be gone, in SQL over these columns; empty where rows stay.
    """

    name: str
    table: str
    query: str
    columns: tuple[str, ...]
    occurred: str
    expires: str = ""


@dataclass(frozen=True, slots=True)
class Window:
    """Offsets `first` to `last` (included) of a partition; with `session` (tenant, session) only its rows."""

    partition: int
    first: int
    last: int
    session: tuple[str, str] | None = None

    @property
    def place(self) -> str:
        """Where a row lies in it, by columns that are in the sorting key of every table."""
        return "partition = {partition:UInt16} AND log_offset BETWEEN {first:UInt64} AND {last:UInt64}"

    @property
    def whose(self) -> str:
        """Whose rows count of those."""
        return "tenant = {tenant:String} AND session_id = {session:String}" if self.session else "true"

    @property
    def parameters(self) -> dict[str, Any]:
        """What the conditions name."""
        told = {"partition": self.partition, "first": self.first, "last": self.last}
        if self.session is None:
            return told
        return {**told, "tenant": self.session[0], "session": self.session[1]}


@dataclass(frozen=True, slots=True)
class Odd:
    """Rows that are on one side only: how many, and the first offset of one."""

    count: int
    first: int


def derived_tables(store: Store) -> dict[str, tuple[View, ...]]:
    """The views over the events that this database has, by the table that they fill.

    Raises:
        StoreUnavailable, QueryError
    """
    sql = (
        "SELECT name, create_table_query, as_select, engine = 'MaterializedView' FROM system.tables "
        "WHERE database = currentDatabase() ORDER BY name"
    )
    tables = store.query(sql).rows
    expires = {name: expires_of(create) for name, create, *_ in tables}
    views: list[View] = []
    for name, create, query, materialized in tables:
        if materialized and EVENTS_TABLE in query:
            target = _TARGET.findall(create)[0]
            columns = _columns(store, query)
            views.append(View(name, target, query, columns, _time_column(query), expires[target]))
    views.sort(key=lambda view: view.table)
    return {table: tuple(found) for table, found in groupby(views, key=lambda view: view.table)}


def missing(store: Store, view: View, window: Window) -> tuple[int, Odd]:
    """How many rows a view makes of the events there, and those that the table has not, or has otherwise.

    Rows that may have expired are none of them. An event that was stored twice, and not merged yet, makes a
    row twice, which readers of the table see once: so both sides have it once.

    Raises:
        StoreUnavailable, QueryError
    """
    columns, expected = ", ".join(view.columns), _expected(view)
    odd = f"SELECT DISTINCT {columns} FROM {expected} AS made EXCEPT ALL {_kept(view, columns)}"
    made = f"SELECT uniqExact(partition, log_offset) FROM {expected} AS made"
    rows, count, first = _ask(store, f"SELECT ({made}), count(), min(log_offset) FROM ({odd})", window)[0]
    return int(rows), Odd(int(count), int(first))


def surplus(store: Store, views: Sequence[View], window: Window, expired: Expired = NOTHING) -> Odd:
    """Rows of a table that none of its views makes of the events, which are stored shorter than some rows.

    Two rows at the offset of one event are one too many: whose they are is no part of what is compared. Rows
    that have outlived their time are none of them, for they go by whole days; nor are those whose events may
    have `expired`.

    Raises:
        StoreUnavailable, QueryError
    """
    key = ", ".join(_KEY)
    made_by_all = " UNION ALL ".join(
        f"SELECT DISTINCT {key} FROM {_expected(replace(view, expires=''))} AS made" for view in views
    )
    young = f"NOT ({expired.condition(views[0].occurred)}){_unexpired(views[0])}"
    odd = f"{_kept(views[0], key)} AND {young} EXCEPT ALL SELECT {key} FROM ({made_by_all})"
    asked = f"SELECT count(), min(log_offset) FROM ({odd})"
    count, first = _ask(store, asked, window, expired.parameters)[0]
    return Odd(int(count), int(first))


def both_rows(
    store: Store, view: View, partition: int, offset: int
) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]:
    """The row at an offset as a view makes it, and as the table has it; None where there is none.

    Raises:
        StoreUnavailable, QueryError
    """
    window, columns = Window(partition, offset, offset), ", ".join(view.columns)
    sides = (f"SELECT {columns} FROM {_expected(view)} AS made", _kept(view, columns))
    rows = [_ask(store, f"{side} LIMIT 1", window) for side in sides]
    expected, found = (dict(zip(view.columns, side[0], strict=True)) if side else None for side in rows)
    return expected, found


def _columns(store: Store, query: str) -> tuple[str, ...]:
    return store.query(f"SELECT * FROM ({query}) LIMIT 0").columns


def _time_column(query: str) -> str:
    named = _NAMED_TIME.search(query)
    return named.group(1) if named else "occurred_at"


def _expected(view: View) -> str:
    return f"(SELECT * FROM ({view.query}) AS rows WHERE {{place}} AND {{whose}}{_unexpired(view)})"


def _unexpired(view: View) -> str:
    return f" AND {view.expires} > now() + {_EXPIRING}" if view.expires else ""


def _kept(view: View, columns: str) -> str:
    # PREWHERE leaves the values of all other rows unread, which WHERE does not with FINAL. FINAL picks among
    # the versions of a row only after it: sound for columns of the sorting key, which all versions share.
    return f"SELECT {columns} FROM {view.table} FINAL PREWHERE {{place}} WHERE {{whose}}"


def _ask(
    store: Store, sql: str, window: Window, parameters: Mapping[str, Any] | None = None
) -> list[list[Any]]:
    asked = sql.replace("{place}", window.place).replace("{whose}", window.whose)
    return store.query(asked, {**window.parameters, **(parameters or {})}, _LIMITS).rows
