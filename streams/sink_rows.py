"""A record of the log as a row of the store."""

from __future__ import annotations

from typing import Any

from pml.clickhouse.rows import event_row
from pml.schemas.codec import decode_event, open_envelope, upcast
from pml.schemas.errors import LogCorrupted, UndecodableRecord, UnknownMessage
from pml.schemas.events import EVENTS

Row = tuple[Any, ...]


def row_of(record: Any) -> Row:
    """The row of a record that counts: checked as a whole, its data as the log has it.

    Raises:
        UndecodableRecord: it is no event, or not the one of this place.
        LogCorrupted: a newer release wrote it.
    """
    try:
        event = decode_event(record.value)
    except UnknownMessage as error:
        raise LogCorrupted(
            f"the sink cannot go on at {record.topic}/{record.partition} offset {record.offset}: "
            f"{error.message}; upgrade PML, nothing is lost until then",
            offset=record.offset,
        ) from error
    if event.offset != record.offset:
        raise UndecodableRecord(f"the event {event.id} says that it lies at offset {event.offset}")
    if not (0 <= event.epoch <= event.offset and 0 <= event.seq <= event.offset):
        raise UndecodableRecord(f"the event {event.id} is numbered as no session can be at this offset")
    fields = upcast(open_envelope(record.value), EVENTS[event.type].VERSION).fields
    try:
        return event_row(record.partition, fields)
    except ValueError as error:
        raise UndecodableRecord(f"the event {event.id} has a time that is none: {error}") from None
