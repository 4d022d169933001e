"""A long log out of a short one: the same sessions again and again, each time under other names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import orjson

from benchmarks.projection import outgoing
from pml.schemas.events import Event
from pml.schemas.identifiers import event_id, session_key
from pml.streams.connection import partition_for
from pml.streams.log.append import Outgoing
from pml.streams.log.reader import OFFSET_HEADER


def repeated(events: Sequence[Event], times: int) -> Iterator[Outgoing]:
    """The events of one partition so often, one time after the other, each at the offset it is written for.

    Every time its sessions have names of their own that lie in the same partition, and so other ids; all else
    of them is the same.
    """
    originals = [outgoing(event) for event in events]
    yield from originals
    for number in range(1, times):
        shift = number * len(events)
        names = {name: _another(name, number) for name in {event.session_id for event in events}}
        for event, original in zip(events, originals, strict=True):
            yield _again(event, original, names[event.session_id], shift)


def _again(event: Event, original: Outgoing, session_id: str, shift: int) -> Outgoing:
    assert original.key is not None
    assert original.value is not None
    old, new = event.session_id.encode(), session_id.encode()
    offset, epoch = event.offset + shift, event.epoch + shift
    fields = orjson.loads(original.value.replace(old, new))
    fields |= {"offset": offset, "epoch": epoch, "id": event_id(event.tenant, session_id, epoch, event.seq)}
    headers = [
        (name, str(offset).encode() if name == OFFSET_HEADER else value) for name, value in original.headers
    ]
    return Outgoing(original.key.replace(old, new), orjson.dumps(fields), headers)


def _another(session_id: str, number: int) -> str:
    """Another name in the same partition."""
    wanted = partition_for(session_key("local", session_id))
    names = (f"{session_id}_{number}_{attempt}" for attempt in count())
    return next(name for name in names if partition_for(session_key("local", name)) == wanted)
