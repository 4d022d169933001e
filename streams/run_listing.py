"""Lists of runs, page by page, the newest first: from ClickHouse, or from the log of one session."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import dropwhile
from typing import Any

import orjson

from pml.schemas.errors import UndecodableRecord
from pml.schemas.events import Event, RunEnded, RunExpanded, RunReplanned, RunStarted
from pml.streams.run_history import query_store, session_events, summarised
from pml.streams.settings import Settings

LISTED = (
    *("run_id", "session_id", "tenant", "status", "name", "workflow_type", "started_at", "ended_at"),
    *("duration_ms", "layers", "tasks", "completed", "failed", "skipped", "unknown"),
    *("hits", "misses", "wasted", "saved_ms", "error_code"),
)
# What the order of the list looks at, besides the time of the start.
_KEY = ("run_id", "session_id", "epoch")


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last run of a page."""

    started_at: str
    run_id: str
    session_id: str
    epoch: int

    def __str__(self) -> str:
        place = orjson.dumps([self.started_at, self.run_id, self.session_id, self.epoch])
        return base64.urlsafe_b64encode(place).decode().rstrip("=")


@dataclass(frozen=True, slots=True)
class RunPage:
    """Some runs with the place of each, and whether there are more."""

    rows: list[dict[str, Any]]
    cursors: tuple[Cursor, ...]
    more: bool

    @property
    def next_cursor(self) -> str | None:
        """Where the next page begins; None behind the last one."""
        return self.cursor_after(len(self.rows))

    def cursor_after(self, count: int) -> str | None:
        """Where a page begins that has the runs behind the first `count` of this one."""
        if count == len(self.rows) and not self.more:
            return None
        return str(self.cursors[count - 1]) if count else None


def cursor_of(text: str) -> Cursor:
    """A cursor as a page gave it.

    Raises:
        UndecodableRecord: it is none of ours.
    """
    try:
        padded = text + "=" * (-len(text) % 4)
        started_at, run_id, session_id, epoch = orjson.loads(base64.urlsafe_b64decode(padded.encode()))
        datetime.fromisoformat(started_at)
        return Cursor(started_at, str(run_id), str(session_id), int(epoch))
    except (binascii.Error, ValueError, TypeError):
        raise UndecodableRecord("the cursor is none that a list of runs gave; begin without one") from None


async def list_runs(
    settings: Settings,
    tenant: str,
    session_id: str | None,
    status: str | None,
    limit: int,
    *,
    cursor: str | None = None,
) -> RunPage:
    """The newest runs first: of all sessions from the store, of one from the log.

    Args:
        cursor: `next_cursor` of the page before. Runs that began since then are on no later page.

    Raises:
        UndecodableRecord: the cursor is none.
        StoreUnavailable, BrokerUnavailable: where they are asked does not answer.
    """
    after = None if cursor is None else cursor_of(cursor)
    if session_id is None:
        return await asyncio.to_thread(_in_store, settings, tenant, status, limit, after)
    rows = _rows_of(await session_events(settings, tenant, session_id))[::-1]
    if after is not None:
        rows = rows[_place(rows, after) + 1 :]
    return _page([row for row in rows if status in (None, row["status"])], limit)


def _in_store(
    settings: Settings, tenant: str, status: str | None, limit: int, after: Cursor | None
) -> RunPage:
    where = ["tenant = {tenant:String}", *(["status = {status:String}"] if status else [])]
    given: dict[str, Any] = {"tenant": tenant, "status": status or ""}
    if after is not None:
        where.append(_BEHIND)
        given |= {
            "started_at": after.started_at,
            "run_id": after.run_id,
            "session_id": after.session_id,
            "epoch": after.epoch,
        }
    sql = (
        f"SELECT {', '.join(LISTED)}, epoch FROM runs WHERE {' AND '.join(where)} "
        f"ORDER BY started_at DESC, {', '.join(_KEY)} LIMIT {limit + 1:d}"
    )
    rows = query_store(settings, sql, given, limit + 1).as_dicts()
    # A column of the store has no null for a run without a name.
    return _page([{**row, "name": row["name"] or None} for row in rows], limit)


_BEHIND = (
    "(started_at < parseDateTime64BestEffort({started_at:String}, 6, 'UTC') OR "
    "(started_at = parseDateTime64BestEffort({started_at:String}, 6, 'UTC') AND "
    "(run_id, session_id, epoch) > ({run_id:String}, {session_id:String}, {epoch:UInt64})))"
)


def _place(rows: list[dict[str, Any]], after: Cursor) -> int:
    """Where the last run of the page before is in the log of its session; nowhere is before all."""
    names = [(row["run_id"], row["epoch"]) for row in rows]
    wanted = (after.run_id, after.epoch)
    return names.index(wanted) if wanted in names else -1


def _page(rows: list[dict[str, Any]], limit: int) -> RunPage:
    """The first of some rows."""
    cursors = tuple(
        Cursor(_text(row["started_at"]), row["run_id"], row["session_id"], row["epoch"])
        for row in rows[:limit]
    )
    kept = [{name: row[name] for name in LISTED} for row in rows[:limit]]
    return RunPage(kept, cursors, more=len(rows) > limit)


def _text(time: Any) -> str:
    return time.isoformat() if isinstance(time, datetime) else str(time)


def _rows_of(events: Iterable[Event]) -> list[dict[str, Any]]:
    by_run: dict[str, list[Event]] = {}
    for event in events:
        if event.run_id is not None:
            by_run.setdefault(event.run_id, []).append(event)
    begun = (_from_its_start(own) for own in by_run.values())
    return [_row(own) for own in begun if own]


def _from_its_start(events: list[Event]) -> list[Event]:
    """Nothing where it was never begun; what comes before is of starts that were refused."""
    return list(dropwhile(lambda event: not isinstance(event.data, RunStarted), events))


PLANS = (RunStarted, RunExpanded, RunReplanned)


def _row(events: list[Event]) -> dict[str, Any]:
    started = events[0].data
    assert isinstance(started, RunStarted)
    summary = summarised(events)
    ends = [event.occurred_at for event in events if isinstance(event.data, RunEnded) and summary.ended]
    plans = [event.data for event in events if isinstance(event.data, PLANS)]
    types = [plan.workflow_type for plan in plans if isinstance(plan, (RunStarted, RunExpanded))]
    facts = {
        **summary.counts.model_dump(),
        "run_id": summary.run_id,
        "session_id": summary.session_id,
        "tenant": summary.tenant,
        "status": summary.status,
        "name": started.name,
        "workflow_type": types[-1],
        "started_at": events[0].occurred_at,
        "ended_at": ends[-1] if ends else None,
        "duration_ms": summary.duration_ms,
        "layers": plans[-1].layers,
        "tasks": plans[-1].tasks,
        "error_code": (summary.error or {}).get("code", ""),
    }
    return {**{name: facts[name] for name in LISTED}, "epoch": events[0].epoch}
