"""Events and threshold records as rows of the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

EVENTS_TABLE = "events_raw"
# The other columns of the table are computed from `data` by ClickHouse.
EVENT_COLUMNS = (
    *("partition", "log_offset", "tenant", "session_id", "epoch", "run_id", "seq", "type", "version"),
    *("occurred_at", "principal", "command_id", "traceparent"),
    *("cause_topic", "cause_partition", "cause_offset", "data"),
)


_AS_THEY_ARE = ("tenant", "principal", "session_id", "epoch", "seq", "type", "version")


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


def event_fields(row: Sequence[Any]) -> dict[str, Any]:
    """An event's JSON object again, of the values of `EVENT_COLUMNS`; all but its id."""
    stored = dict(zip(EVENT_COLUMNS, row, strict=True))
    found = {name: stored[name] for name in _AS_THEY_ARE}
    optional = {name: stored[name] for name in ("run_id", "command_id", "traceparent") if stored[name]}
    if stored["cause_topic"]:
        optional["cause"] = {name: stored[f"cause_{name}"] for name in ("topic", "partition", "offset")}
    at = stored["occurred_at"].astimezone(UTC)
    return {
        **found,
        **optional,
        "offset": stored["log_offset"],
        "occurred_at": at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "data": orjson.loads(stored["data"]),
    }


THRESHOLDS_TABLE = "thresholds_raw"
THRESHOLD_COLUMNS = (
    *("partition", "log_offset", "tenant", "context_key", "level", "user", "domain", "workflow_type"),
    *("source", "previous", "value", "ema", "success_rate", "windows", "outcomes", "state", "reason"),
    *("principal", "changed_at"),
)


def threshold_row(offset: int, key: str, data: Mapping[str, Any], *, manual: bool) -> tuple[Any, ...]:
    """The values of `THRESHOLD_COLUMNS` for a catalog record of that id, found at `offset` of the catalog."""
    taken_back = "set" if data.get("value") is not None else "unset"
    return (
        0,
        offset,
        data["tenant"],
        key,
        data["level"],
        data.get("user") or "",
        data.get("domain") or "",
        data.get("workflow_type") or "",
        "manual" if manual else "learned",
        data.get("previous"),
        data.get("value"),
        data.get("ema"),
        data.get("success_rate"),
        data.get("windows", 0),
        data.get("outcomes", 0),
        data.get("state", ""),
        taken_back if manual else data["reason"],
        data.get("principal", ""),
        datetime.fromisoformat(data["changed_at"]),
    )
