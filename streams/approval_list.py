"""Calls that wait for a person, or did: from ClickHouse, or from the log of one session."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import orjson

from pml.schemas.codec import encode
from pml.schemas.errors import Refused
from pml.schemas.events import ApprovalGranted, ApprovalRequested, ApprovalSettled, Event
from pml.streams.run_history import query_store, session_events
from pml.streams.settings import Settings

SHOWN = (
    *("approval_id", "status", "run_id", "session_id", "task_id", "tool", "description", "arguments"),
    *("effect", "touches", "code", "message", "calls", "omitted", "principal", "requested_at", "expires_at"),
    *("decided_by", "reason", "computed", "via"),
)


_JSON = ("arguments", "calls")
_NOTHING: dict[str, Any] = {
    "arguments": None,
    "calls": [],
    "omitted": 0,
    "decided_by": "",
    "reason": "",
    "computed": False,
    "via": "",
}


class NoSuchApproval(Refused):
    """No request of that name is known."""

    code = "NO_SUCH_APPROVAL"


async def list_approvals(
    settings: Settings, tenant: str, session_id: str | None, everything: bool, limit: int
) -> list[dict[str, Any]]:
    """The newest first; the open ones, or with `everything` also those that were settled.

    Raises:
        StoreUnavailable, BrokerUnavailable: where they are asked does not answer.
    """
    if session_id is None:
        rows = await asyncio.to_thread(_stored, settings, tenant, limit, None if everything else "open")
    else:
        rows = list(_folded(await session_events(settings, tenant, session_id)).values())[::-1]
    return [row for row in rows if everything or row["status"] == "open"][:limit]


async def find_approval(
    settings: Settings, tenant: str, approval_id: str, session_id: str | None
) -> dict[str, Any]:
    """One request, whatever became of it.

    Raises:
        NoSuchApproval: there is none of that name.
        StoreUnavailable, BrokerUnavailable: where it is asked does not answer.
    """
    if session_id is None:
        rows = await asyncio.to_thread(_stored, settings, tenant, 1, None, approval_id)
        found = rows[0] if rows else None
    else:
        found = _folded(await session_events(settings, tenant, session_id)).get(approval_id)
    if found is None:
        hint = "" if session_id else "; the store may be a moment behind: --session SESSION reads the log"
        raise NoSuchApproval(f"no approval {approval_id} is known{hint}")
    return found


def _stored(
    settings: Settings, tenant: str, limit: int, status: str | None, approval_id: str | None = None
) -> list[dict[str, Any]]:
    where = "tenant = {tenant:String}"
    where += " AND status = {status:String}" if status else ""
    where += " AND approval_id = {approval:String}" if approval_id else ""
    sql = (
        "SELECT *, if(tool_name = '', '', concat(tool_server, ':', tool_name)) AS tool FROM approvals "
        f"WHERE {where} ORDER BY requested_at DESC, approval_id LIMIT {limit:d}"
    )
    given = {"tenant": tenant, "status": status or "", "approval": approval_id or ""}
    rows = query_store(settings, sql, given, limit).as_dicts()
    return [_row(row | {name: orjson.loads(row[name] or "null") for name in _JSON}) for row in rows]


def _folded(events: Iterable[Event]) -> dict[str, dict[str, Any]]:
    """Requests by their id, in the order in which they were asked."""
    found: dict[str, dict[str, Any]] = {}
    for event in events:
        data = event.data
        if isinstance(data, ApprovalRequested):
            names = ("run_id", "session_id", "principal")
            whose = {name: getattr(event, name) for name in names}
            told = orjson.loads(encode(data))
            asked = {**told, **whose, "status": "open", "requested_at": event.occurred_at}
            found[data.approval_id] = _row(asked)
        elif isinstance(data, ApprovalSettled) and data.approval_id in found:
            computed = isinstance(data, ApprovalGranted) and bool(data.computed)
            settled = {"decided_by": data.decided_by, "reason": data.reason, "computed": computed}
            settled |= {"via": data.via or ""}
            found[data.approval_id] |= {"status": event.type.partition(".")[2], **settled}
    return found


def _row(fields: dict[str, Any]) -> dict[str, Any]:
    given = {name: fields[name] for name in SHOWN if fields.get(name) is not None}
    return _NOTHING | given
