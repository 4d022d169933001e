"""Which events the store may have dropped for their age: what its table and its clock say of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pml.clickhouse.client import Store
from pml.clickhouse.rows import EVENTS_TABLE

NEVER = datetime.min.replace(tzinfo=UTC)
"""Before this nothing happened: nothing expires."""
# An event has the time of what caused it: one that stands before another is at most so much younger.
OUT_OF_ORDER = timedelta(days=1)
OFFSET_MAX = 2**63 - 1
_EXPIRES = re.compile(r"\bTTL (.+?)(?= SETTINGS |$)")


@dataclass(frozen=True, slots=True)
class Expired:
    """Which events of a partition may be gone: of before that time, at offsets less than `until`.

    They do not expire in the order of the log: the store drops what is of one month, and an event of January
    may stand behind the first of February. But behind one that is clearly younger none has expired, whatever
    time a row names.
    """

    before: datetime
    until: int

    def condition(self, occurred: str) -> str:
        """Whether the event of a row may be gone, in SQL; `occurred` is the column that has its time."""
        old = f"toUnixTimestamp({occurred}) < {{expired_before:Int64}}"
        return f"log_offset < {{expired_until:UInt64}} AND {old}"

    @property
    def parameters(self) -> dict[str, Any]:
        """What the condition names."""
        return {"expired_until": self.until, "expired_before": int(self.before.timestamp())}


NOTHING = Expired(NEVER, 0)


def expires_of(create_query: str) -> str:
    """When a row of a table may be gone, in SQL over its columns; empty where rows stay."""
    return "".join(_EXPIRES.findall(create_query))


def table_expires(store: Store, table: str) -> str:
    """The same of a table of this database.

    Raises:
        StoreUnavailable, QueryError
    """
    sql = (
        "SELECT create_table_query FROM system.tables "
        "WHERE database = currentDatabase() AND name = {table:String}"
    )
    return "".join(expires_of(create) for (create,) in store.query(sql, {"table": table}).rows)


def expired_before(store: Store) -> datetime:
    """Events that occurred before this time may be gone by now; `NEVER` where they stay.

    Raises:
        StoreUnavailable, QueryError
    """
    expires = table_expires(store, EVENTS_TABLE)
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


def expired_events(store: Store, partition: int) -> Expired:
    """Which events of a partition the store may have dropped for their age.

    Raises:
        StoreUnavailable, QueryError
    """
    before = expired_before(store)
    if before == NEVER:
        return NOTHING
    sql = (
        f"SELECT count(), min(log_offset) FROM {EVENTS_TABLE} WHERE partition = {{partition:UInt16}} "
        "AND toUnixTimestamp(occurred_at) >= {young:Int64}"
    )
    told = {"partition": partition, "young": int((before + OUT_OF_ORDER).timestamp())}
    ((count, first),) = store.query(sql, told).rows
    return Expired(before, int(first) if int(count) else OFFSET_MAX)


def oldest_after_expired(store: Store, partition: int) -> int:
    """The first offset of a partition that lies behind all runs whose events have expired; 0 where none has.

    What a session begins with is a row of its first run, which stays: it tells what has expired from what was
    lost otherwise. A session never goes back in time, so one that begins behind the last such row is whole.

    Raises:
        StoreUnavailable, QueryError
    """
    expired = expired_events(store, partition)
    gone = expired.condition("occurred_at")
    sql = (
        f"SELECT count(), max(log_offset) FROM runs_raw WHERE partition = {{partition:UInt16}} AND {gone} "
        f"AND log_offset NOT IN (SELECT log_offset FROM {EVENTS_TABLE} "
        f"WHERE partition = {{partition:UInt16}} AND {gone})"
    )
    ((holes, last),) = store.query(sql, {"partition": partition, **expired.parameters}).rows
    return max(oldest_event(store, partition), int(last) + 1) if int(holes) else 0
