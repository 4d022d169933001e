"""Which events the store may have dropped for their age: what its table and its clock say of it."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from pml.clickhouse.client import Store
from pml.clickhouse.rows import EVENTS_TABLE

NEVER = datetime.min.replace(tzinfo=UTC)
"""Before this nothing happened: nothing expires."""
_EXPIRES = re.compile(r"\bTTL (.+?)(?= SETTINGS |$)")


def expires_of(create_query: str) -> str:
    """When a row of a table may be gone, in SQL over its columns; empty where rows stay."""
    return "".join(_EXPIRES.findall(create_query))


def expired_before(store: Store) -> datetime:
    """Events that occurred before this time may be gone by now; `NEVER` where they stay.

    Raises:
        StoreUnavailable, QueryError
    """
    sql = (
        "SELECT create_table_query FROM system.tables "
        "WHERE database = currentDatabase() AND name = {table:String}"
    )
    expires = "".join(expires_of(create) for (create,) in store.query(sql, {"table": EVENTS_TABLE}).rows)
    if not expires:
        return NEVER
    kept_s = f"dateDiff('second', occurred_at, toDateTime({expires}))"
    asked = f"SELECT toUnixTimestamp(occurred_at) - {kept_s} FROM (SELECT now('UTC') AS occurred_at)"
    return datetime.fromtimestamp(int(store.query(asked).rows[0][0]), UTC)


def oldest_event(store: Store, partition: int) -> int:
    """The first offset of a partition whose event is still stored; 0 where there is none.

    Raises:
        StoreUnavailable, QueryError
    """
    sql = f"SELECT min(log_offset) FROM {EVENTS_TABLE} WHERE partition = {{partition:UInt16}}"
    return int(store.query(sql, {"partition": partition}).rows[0][0])


def oldest_after_expired(store: Store, partition: int) -> int:
    """The first offset that is still stored of a partition whose first events have expired; 0 where none has.

    What a session begins with is a row of its first run, which stays: it tells what has expired from what was
    lost otherwise.

    Raises:
        StoreUnavailable, QueryError
    """
    oldest = oldest_event(store, partition)
    sql = (
        "SELECT count() FROM runs_raw WHERE partition = {partition:UInt16} AND log_offset < {oldest:UInt64} "
        "AND toUnixTimestamp(occurred_at) < {before:Int64}"
    )
    before = int(expired_before(store).timestamp())
    told = {"partition": partition, "oldest": oldest, "before": before}
    return oldest if int(store.query(sql, told).rows[0][0]) else 0
