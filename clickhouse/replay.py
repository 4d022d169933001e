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
    # PREWHERE leaves the data of all other events unread, which WHERE does not with FINAL. FINAL picks among
    # the versions of a row only after it: sound for columns of the sorting key, which all versions share.
    sql = (
        f"SELECT {', '.join(EVENT_COLUMNS)} FROM {EVENTS_TABLE} FINAL "
        "PREWHERE partition = {partition:UInt16} AND log_offset BETWEEN {first:UInt64} AND {last:UInt64} "
        "AND session_id != ''"
    )
    parameters: dict[str, Any] = {"partition": partition, "first": first, "last": last}
    if session is not None:
        sql += " AND tenant = {tenant:String} AND session_id = {session:String}"
        parameters |= {"tenant": session[0], "session": session[1]}
    sql += " ORDER BY log_offset, session_id"
    return _rows(store, sql, parameters)


def stored_counts(store: Store) -> dict[int, int]:
    """About how many events the store has of each partition; what was inserted twice may count twice.

    Raises:
        StoreUnavailable, QueryError
    """
    found = store.query(f"SELECT partition, count() FROM {EVENTS_TABLE} GROUP BY partition", {})
    return {int(partition): int(count) for partition, count in found.rows}


def stored_page(store: Store, partition: int, after: int, events: int) -> list[tuple[Any, ...]]:
    """The next rows of `EVENT_COLUMNS` of a partition after an offset, in order, at most so many.

    Raises:
        StoreUnavailable, QueryError
    """
    sql = (
        f"SELECT {', '.join(EVENT_COLUMNS)} FROM {EVENTS_TABLE} FINAL WHERE "
        "partition = {partition:UInt16} AND log_offset > {offset:Int64} "
        "ORDER BY log_offset LIMIT {events:UInt32}"
    )
    return _rows(store, sql, {"partition": partition, "offset": after, "events": events})


def _rows(store: Store, sql: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
    limits = Limits(rows=ROWS_MAX, time_s=300.0, result_bytes=CHUNK_BYTES_MAX)
    rows = store.query(sql, parameters, limits).rows
    at = EVENT_COLUMNS.index("occurred_at")
    return [(*row[:at], datetime.fromisoformat(row[at]), *row[at + 1 :]) for row in rows]
