"""Runs as people look at them: from ClickHouse, or from the log of one session."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import orjson

from pml.clickhouse.client import Limits, Rows, Store
from pml.schemas.codec import decode_event
from pml.schemas.commands import RunStart
from pml.schemas.errors import PMLError, StoreUnavailable
from pml.schemas.events import CommandRejected, Event, RunStarted
from pml.streams.client import EventConsumer, rejection
from pml.streams.connection import store_url
from pml.streams.run_summary import RunSummary, observe
from pml.streams.settings import Settings

# A run has at most 500 tasks, each with some ten events and as many of speculations.
RUN_EVENTS_MAX = 50_000


class NoSuchRun(PMLError):
    """No event of that run is known."""

    code = "NOT_FOUND"


async def run_events(settings: Settings, tenant: str, run_id: str, session_id: str | None) -> list[Event]:
    """The events of a run that was begun, from the store, or from the log where its session is given.

    The store is a moment behind. Where it has no end of the run, the log is read as well: of the session that
    it names, or, where it has nothing yet, of the run's own (a run without a session is its own session).

    Raises:
        NoSuchRun: there are none.
        Refused: what asked for the run was refused; the error has the code and message of the answer.
        StoreUnavailable, BrokerUnavailable: where they are asked does not answer.
    """
    if session_id is not None:
        return _found(await _run_in_log(settings, tenant, run_id, session_id), run_id, session_id)
    events = _of_one_session(await asyncio.to_thread(_events_in_store, settings, tenant, run_id))
    if not (events and summarised(events).ended):
        session, epoch = (events[0].session_id, events[0].epoch) if events else (run_id, 0)
        events = await _run_in_log(settings, tenant, run_id, session, epoch) or events
    return _found(events, run_id, None)


async def _run_in_log(
    settings: Settings, tenant: str, run_id: str, session_id: str, offset: int = 0
) -> list[Event]:
    events = await session_events(settings, tenant, session_id, offset)
    return [event for event in events if event.run_id == run_id]


def _found(events: list[Event], run_id: str, session_id: str | None) -> list[Event]:
    if not begun(events):
        place = "the store" if session_id is None else f"the log of session {session_id}"
        hint = "; it may be a moment behind: --session SESSION reads the log" if session_id is None else ""
        raise NoSuchRun(f"no start of run {run_id} is in {place}{hint}")
    return events


def begun(events: list[Event]) -> bool:
    """Whether a run was begun, whatever else was refused before or after; False where nobody asked for it.

    Raises:
        Refused: what asked for it was refused; with the code and message of the newest answer.
    """
    if any(isinstance(event.data, RunStarted) for event in events):
        return True
    for event in reversed(events):
        if isinstance(event.data, CommandRejected) and event.data.command_type == RunStart.TYPE:
            raise rejection(event.data)
    return False


def _of_one_session(events: list[Event]) -> list[Event]:
    """Those of the session that began the run last, for a refused start may be sent again to another session.

    Where none began it, those of the session that spoke of it last.
    """
    started = [event for event in events if isinstance(event.data, RunStarted)]
    newest = max(started or events, key=lambda event: event.occurred_at, default=None)
    return [event for event in events if newest is not None and event.session_id == newest.session_id]


async def session_of(settings: Settings, tenant: str, run_id: str) -> str:
    """The session of a run, as the store has it; a run that it does not know is its own session.

    Raises:
        StoreUnavailable: the store does not answer; the session has to be named.
    """
    sql = "SELECT session_id FROM runs WHERE tenant = {tenant:String} AND run_id = {run_id:String} LIMIT 1"
    found = await asyncio.to_thread(query_store, settings, sql, {"tenant": tenant, "run_id": run_id}, 1)
    return str(found.rows[0][0]) if found.rows else run_id


def summarised(events: Iterable[Event]) -> RunSummary:
    """What the events of one run came to."""
    events = list(events)
    first = events[0]
    summary = RunSummary(first.run_id or "", first.session_id, first.tenant)
    for event in events:
        summary = observe(summary, event)
    return summary


def _events_in_store(settings: Settings, tenant: str, run_id: str) -> list[Event]:
    sql = (
        "SELECT * FROM events WHERE tenant = {tenant:String} AND run_id = {run_id:String} "
        f"ORDER BY epoch, log_offset LIMIT {RUN_EVENTS_MAX}"
    )
    rows = query_store(settings, sql, {"tenant": tenant, "run_id": run_id}, RUN_EVENTS_MAX)
    return [_event(row) for row in rows.as_dicts()]


def query_store(settings: Settings, sql: str, parameters: dict[str, Any], rows: int) -> Rows:
    """Rows of the store.

    Raises:
        StoreUnavailable: it does not answer; the error says what does.
    """
    try:
        with Store.connect(store_url(settings), settings.clickhouse.database) as store:
            return store.query(sql, parameters, Limits(rows=rows))
    except StoreUnavailable as error:
        raise StoreUnavailable(
            f"{error.message.rstrip('.')}. With --session SESSION the log is read instead.", **error.details
        ) from None


def _event(row: dict[str, Any]) -> Event:
    """The event that a row of the view `events` was made of."""
    cause = {name: row[f"cause_{name}"] for name in ("topic", "partition", "offset")}
    fields = {
        **{name: row[name] for name in ("id", "type", "version", "tenant", "principal", "session_id")},
        **{name: row[name] for name in ("epoch", "seq", "occurred_at")},
        **{name: row[name] or None for name in ("run_id", "command_id", "traceparent")},
        "offset": row["log_offset"],
        "cause": cause if cause["topic"] else None,
        "data": orjson.loads(row["data"]),
    }
    return decode_event(orjson.dumps(fields))


async def session_events(settings: Settings, tenant: str, session_id: str, offset: int = 0) -> list[Event]:
    """The events of a session, from the log.

    Raises:
        BrokerUnavailable: it does not answer.
    """
    async with EventConsumer(settings, session_id=session_id, tenant=tenant, until_end=True) as consumer:
        consumer.seek(offset)
        return [event async for event in consumer]
