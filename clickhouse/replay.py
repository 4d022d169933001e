"""The stored events by their place in the log, for a replay."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pml.clickhouse.client import Limits, Store
from pml.clickhouse.rows import EVENT_COLUMNS, EVENTS_TABLE

# A chunk of a replay is far smaller; only rows that nobody wrote through the sink could be so many.
ROWS_MAX = 100_000
CHUNK_BYTES_MAX = 1 << 30


def stored_rows(
    store: Store, partition: int, first: int, last: int, session: tuple[str, str] | None = None
) -> list[tuple[Any, ...]]:
    """The rows of `EVENT_COLUMNS` at offsets `first` to `last` (included) of a partition, in order.

    Rows that belong to no session are left out. `session` (tenant, session) leaves only those of one.

    Raises:
        StoreUnavailable, QueryError
    """
    sql = (
        f"SELECT {', '.join(EVENT_COLUMNS)} FROM {EVENTS_TABLE} FINAL WHERE partition = {{partition:UInt16}} "
        "AND log_offset BETWEEN {first:UInt64} AND {last:UInt64} AND session_id != ''"
    )
    parameters: dict[str, Any] = {"partition": partition, "first": first, "last": last}
    if session is not None:
        sql += " AND tenant = {tenant:String} AND session_id = {session:String}"
        parameters |= {"tenant": session[0], "session": session[1]}
    sql += " ORDER BY log_offset, session_id"
    return _rows(store, sql, parameters)


def stored_page(store: Store, after: tuple[int, int], events: int) -> list[tuple[Any, ...]]:
    """The next rows of `EVENT_COLUMNS` after a partition and offset, in this order, at most so many.

    Raises:
        StoreUnavailable, QueryError
    """
    sql = (
        f"SELECT {', '.join(EVENT_COLUMNS)} FROM {EVENTS_TABLE} FINAL WHERE "
        "(partition, log_offset) > ({partition:Int32}, {offset:Int64}) "
        "ORDER BY partition, log_offset LIMIT {events:UInt32}"
    )
    return _rows(store, sql, {"partition": after[0], "offset": after[1], "events": events})


def _rows(store: Store, sql: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
    limits = Limits(rows=ROWS_MAX, time_s=300.0, result_bytes=CHUNK_BYTES_MAX)
    rows = store.query(sql, parameters, limits).rows
    at = EVENT_COLUMNS.index("occurred_at")
    return [(*row[:at], datetime.fromisoformat(row[at]), *row[at + 1 :]) for row in rows]
