"""How long and how many episodes are kept: both come from the settings, so no migration can hold them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pml.clickhouse.client import Store
from pml.clickhouse.expiry import table_expires

# Longer than any setting. A table that is being filled keeps its episodes so long: whoever finds it like
# that, because somebody was interrupted, fills it again.
FILLING_DAYS = 1_000
_TABLE = "episodes_raw"
_DAYS = re.compile(r"toIntervalDay\((\d+)\)")
_TTL = "ALTER TABLE episodes_raw MODIFY TTL toDateTime(timestamp) + INTERVAL {days} DAY"
_VIEW = """
CREATE OR REPLACE VIEW episodes AS
SELECT
    concat(e.tenant, '/', e.session_id, ':', toString(e.epoch), ':', toString(e.seq)) AS id,
    e.run_id AS workflow_id, e.event_type AS event_type, e.task_id AS task_id, e.timestamp AS timestamp,
    e.tool_id AS tool_id, e.success AS success, e.confidence AS confidence, e.details AS data,
    r.workflow_type AS workflow_type, r.context AS context,
    e.tenant AS tenant, e.session_id AS session_id, e.epoch AS epoch, e.seq AS seq,
    e.partition AS partition, e.log_offset AS log_offset
FROM (SELECT * FROM episodes_raw FINAL ORDER BY timestamp DESC LIMIT {most} BY tenant) AS e
LEFT JOIN
(
    SELECT tenant, session_id, epoch, run_id, workflow_type, context
    FROM runs_raw FINAL WHERE type = 'run.started'
) AS r ON r.tenant = e.tenant AND r.session_id = e.session_id AND r.epoch = e.epoch AND r.run_id = e.run_id
"""
_DEFINITION = (
    "SELECT as_select FROM system.tables WHERE database = {database:String} AND name = 'episodes_from_events'"
)


@dataclass(frozen=True, slots=True)
class EpisodeRetention:
    """Day partitions older than `days` are dropped; the view shows the newest `most` of each tenant."""

    days: int = 30
    most: int = 10_000


def keep_episodes(store: Store, retention: EpisodeRetention) -> None:
    """Make these limits hold; safe to repeat.

    Where they keep more days than so far, the episodes of these are derived again: they were dropped.

    Raises:
        StoreUnavailable, QueryError
    """
    if not retention.days <= _days_kept(store) < FILLING_DAYS:
        store.command(_TTL.format(days=FILLING_DAYS))
        remember_events(store)
    store.command(_TTL.format(days=retention.days))
    store.command(_VIEW.format(most=retention.most))


def remember_events(store: Store) -> None:
    """Derive the episodes of the events that were stored before there were any; safe to repeat.

    Raises:
        StoreUnavailable, QueryError
    """
    ((select,),) = store.query(_DEFINITION, {"database": store.address.database}).rows
    columns = "partition, log_offset, tenant, session_id, epoch, run_id, seq, event_type, task_id, timestamp"
    columns += ", tool_id, success, confidence, details"
    # They were inserted before they were dropped: no server may take them for a repetition.
    repeats = {"insert_deduplicate": 0}
    store.command(f"INSERT INTO {_TABLE} ({columns}) {select}", settings=repeats)


def _days_kept(store: Store) -> int:
    found = _DAYS.search(table_expires(store, _TABLE))
    return int(found[1]) if found else FILLING_DAYS
