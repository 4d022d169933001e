"""`/v1/runs/{id}/events`: every step of a run as it happens (server-sent events)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import orjson
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request
from starlette.responses import Response

from pml.schemas.codec import encode
from pml.schemas.errors import UndecodableRecord
from pml.schemas.events import Event, RunRetried, RunStarted
from pml.streams.client import EventConsumer
from pml.streams.gateway import requests
from pml.streams.gateway.callers import Caller
from pml.streams.gateway.doors import Doors
from pml.streams.run_history import run_events
from pml.streams.run_summary import RUN_ENDS

PING_S = 15
FROM_THE_FIRST = "-1"
Place = tuple[int, int]
BEFORE_ALL: Place = (-1, -1)
# A later life of a session knows nothing of a run, so that the same id may begin another.
BEGINNINGS = (RunStarted, RunRetried)


async def follow(request: Request, caller: Caller, doors: Doors) -> Response:
    """The events of a run from its first, or after `Last-Event-ID`, until its end; `id` is their epoch-seq.

    A run whose start was refused has no stream but the problem of that answer: an `EventSource` then stops.
    """
    caller.require("runs:read")
    run_id, last_id = requests.name_of(request, "run_id"), _last_id(request)
    doors.waiting.check()
    events = await run_events(doors.settings, caller.tenant, run_id, request.query_params.get("session"))
    seen = _seen(last_id, events[0])
    if _ended(events) and all(_place(event) <= seen for event in events):
        # An EventSource opens a stream that has ended again and again, until it is told: nothing more.
        return Response(status_code=204, headers={"cache-control": "no-store"})
    stream = _after(_lived(doors, caller, run_id, events), seen)
    return EventSourceResponse(stream, ping=PING_S, headers={"cache-control": "no-store"})


def _place(event: Event) -> Place:
    """Where an event is among those of its run: seq begins again with each life of the session."""
    return event.epoch, event.seq


def _last_id(request: Request) -> tuple[int, ...]:
    """The numbers of `Last-Event-ID`: epoch and seq, or seq alone as ids once were; none where all is wanted.

    Raises:
        UndecodableRecord: it is no id of an event.
    """
    text = request.headers.get("last-event-id", FROM_THE_FIRST)
    if text == FROM_THE_FIRST:
        return ()
    numbers = [requests.whole_number(part) for part in text.split("-")]
    found = tuple(number for number in numbers if number is not None)
    if len(found) != len(numbers) or len(found) > 2:
        raise UndecodableRecord("Last-Event-ID is the id of an event of this stream, such as 1200-7")
    return found


def _seen(last_id: tuple[int, ...], first: Event) -> Place:
    """The place of the last event that a client has.

    A seq alone is of the life in which the run was asked for first: rather is an event told twice than never.
    """
    if not last_id:
        return BEFORE_ALL
    epoch, seq = (first.epoch, *last_id)[-2:]
    return epoch, seq


async def _after(events: AsyncIterator[Event], seen: Place) -> AsyncIterator[ServerSentEvent]:
    async for event in events:
        if _place(event) > seen:
            text = orjson.dumps(orjson.loads(encode(event))).decode()
            yield ServerSentEvent(id=f"{event.epoch}-{event.seq}", event=event.type, data=text)


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
    last = [event for event in events if event.type in RUN_ENDS or isinstance(event.data, BEGINNINGS)]
    return last[-1].type in RUN_ENDS
