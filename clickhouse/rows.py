"""An event as a row of `events_raw`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson

EVENTS_TABLE = "events_raw"
# The other columns of the table are computed from `data` by ClickHouse.
EVENT_COLUMNS = (
    *("partition", "log_offset", "tenant", "session_id", "epoch", "run_id", "seq", "type", "version"),
    *("occurred_at", "principal", "command_id", "traceparent"),
    *("cause_topic", "cause_partition", "cause_offset", "data"),
)


def event_row(partition: int, event: Mapping[str, Any]) -> tuple[Any, ...]:
    """The values of `EVENT_COLUMNS` for an event's JSON object, found in `partition` of the log."""
    cause = event.get("cause") or {}
    return (
        partition,
        event["offset"],
        event["tenant"],
        event["session_id"],
        event["epoch"],
        event.get("run_id") or "",
        event["seq"],
        event["type"],
        event["version"],
        datetime.fromisoformat(event["occurred_at"]),
        event.get("principal") or "",
        event.get("command_id") or "",
        event.get("traceparent") or "",
        cause.get("topic", ""),
        cause.get("partition", 0),
        cause.get("offset", 0),
        orjson.dumps(event["data"]).decode(),
    )
