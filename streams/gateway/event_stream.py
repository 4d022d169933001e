"""`/v1/runs/{id}/events`: every step of a run as it happens (server-sent events)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import orjson
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request
from starlette.responses import Response

from pml.schemas.codec import encode
from pml.schemas.errors import UndecodableRecord
from pml.schemas.events import Event, RunRetried
from pml.streams.client import EventConsumer
from pml.streams.gateway import requests
from pml.streams.gateway.callers import Caller
from pml.streams.gateway.doors import Doors
from pml.streams.run_history import run_events
from pml.streams.run_summary import RUN_ENDS

PING_S = 15


async def follow(request: Request, caller: Caller, doors: Doors) -> Response:
    """The events of a run from its first, or after `Last-Event-ID`, until its end; `id` is their seq."""
    caller.require("runs:read")
    run_id, seen = requests.name_of(request, "run_id"), _last_seen(request)
    doors.waiting.check()
    events = await run_events(doors.settings, caller.tenant, run_id, request.query_params.get("session"))
    if seen >= 0 and _ended(events) and all(event.seq <= seen for event in events):
        # An EventSource opens a stream that has ended again and again, until it is told: nothing more.
        return Response(status_code=204, headers={"cache-control": "no-store"})
    stream = _after(_lived(doors, caller, run_id, events), seen)
    return EventSourceResponse(stream, ping=PING_S, headers={"cache-control": "no-store"})


def _last_seen(request: Request) -> int:
    text = request.headers.get("last-event-id", "-1")
    found = -1 if text == "-1" else requests.whole_number(text)
    if found is None:
        raise UndecodableRecord("Last-Event-ID is the seq of an event")
    return found


async def _after(events: AsyncIterator[Event], seen: int) -> AsyncIterator[ServerSentEvent]:
    async for event in events:
        if event.seq > seen:
            yield ServerSentEvent(
                id=str(event.seq), event=event.type, data=orjson.dumps(orjson.loads(encode(event))).decode()
            )


async def _lived(doors: Doors, caller: Caller, run_id: str, known: list[Event]) -> AsyncIterator[Event]:
    """What is known of a run, then what comes, until it has ended and nobody took it up again."""
    for event in known:
        yield event
    if _ended(known):
        return
    last = known[-1]
    with doors.waiting.one_more():
        async for event in _coming(doors, caller, run_id, last):
            yield event


async def _coming(doors: Doors, caller: Caller, run_id: str, last: Event) -> AsyncIterator[Event]:
    async with EventConsumer(doors.settings, session_id=last.session_id, tenant=caller.tenant) as consumer:
        consumer.seek(last.offset + 1)
        async for event in consumer:
            if event.run_id != run_id:
                continue
            yield event
            if event.type in RUN_ENDS:
                return


def _ended(events: list[Event]) -> bool:
    """Whether nothing came after the end."""
    last = [event for event in events if event.type in RUN_ENDS or isinstance(event.data, RunRetried)]
    return bool(last) and last[-1].type in RUN_ENDS
