"""The valid reader of the log: which records of `pml.events` count (DESIGN §2, rule 1).

A record counts where the offset it was written for is the offset at which it lies. What an overtaken
owner wrote too late lies elsewhere and is void for every reader. The header says it, so no record has
to be decoded to know; nothing here knows a Kafka client, and a simulator reads through it too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from pml.schemas.codec import decode_event_fields
from pml.schemas.errors import LogCorrupted, UndecodableRecord, UnknownMessage
from pml.schemas.events import Event

OFFSET_HEADER = "pml-offset"
TYPE_HEADER = "pml-type"
CONTENT_TYPE = b"application/json"
Headers = Sequence[tuple[str, bytes]]


class LogRecord(Protocol):
    """A record of the log as any consumer has it."""

    @property
    def offset(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Headers: ...


R = TypeVar("R", bound=LogRecord)


def event_headers(event: Event) -> list[tuple[str, bytes]]:
    """The Kafka headers of an event (CONTRACT.md, Messages)."""
    headers = [
        (TYPE_HEADER, event.type.encode()),
        ("pml-version", str(event.version).encode()),
        ("pml-tenant", event.tenant.encode()),
        (OFFSET_HEADER, str(event.offset).encode()),
        ("content-type", CONTENT_TYPE),
    ]
    if event.traceparent is not None:
        headers.append(("traceparent", event.traceparent.encode()))
    return headers


def header(record: LogRecord, name: str) -> bytes | None:
    """The first header of that name; None where there is none."""
    for key, value in record.headers or ():  # three times as fast as a generator, and asked of every record
        if key == name:
            return value
    return None


def counted(record: LogRecord) -> bool:
    """Whether the record lies where it was written for; everything else is void."""
    return header(record, OFFSET_HEADER) == str(record.offset).encode()


def event_type(record: LogRecord) -> str:
    """The type that the header names, without decoding; empty where there is none."""
    return (header(record, TYPE_HEADER) or b"").decode(errors="replace")


def counted_event(record: LogRecord) -> Event:
    """The event of a record that counts.

    Raises:
        LogCorrupted: our own log holds what this release cannot read (DESIGN §2, rule 9).
    """
    return counted_fields(record)[0]


def counted_fields(record: LogRecord) -> tuple[Event, dict[str, Any]]:
    """The event of a record that counts, and its JSON object in the newest version.

    Raises:
        LogCorrupted: our own log holds what this release cannot read (DESIGN §2, rule 9).
    """
    try:
        event, fields = decode_event_fields(record.value)
    except (UndecodableRecord, UnknownMessage) as error:
        raise LogCorrupted(
            f"the log cannot be read at offset {record.offset}: {error.message}; "
            "run the release that wrote it, or a newer one",
            offset=record.offset,
        ) from error
    if event.offset != record.offset:
        raise LogCorrupted(
            f"the record at offset {record.offset} of the log says offset {record.offset} in its header "
            f"and {event.offset} in its value",
            offset=record.offset,
        )
    return event, fields
