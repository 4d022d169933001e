"""Where a replay reads the events that count: the log, or a file of `pml events dump --json`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from pml.clickhouse.client import Store
from pml.clickhouse.replay import stored_page
from pml.clickhouse.rows import event_fields
from pml.schemas.codec import decode_event_fields
from pml.schemas.errors import LogCorrupted, PMLError, UndecodableRecord
from pml.schemas.events import Event
from pml.schemas.identifiers import event_id, session_key
from pml.schemas.times import from_rfc3339
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.connection import client_options, partition_for
from pml.streams.log.reader import counted, counted_fields
from pml.streams.log.tail import Tails
from pml.streams.replay.report import UNKNOWN, Place
from pml.streams.settings import Settings

BEFORE_ALL = (-1, -1)
PAGE_EVENTS = 5_000


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One counted event, where it lies, and its JSON object as the sink would read it."""

    partition: int
    event: Event
    fields: dict[str, Any]

    @property
    def session(self) -> tuple[str, str]:
        """Tenant and name of its session."""
        return self.event.tenant, self.event.session_id

    @property
    def place(self) -> Place:
        """Its place, called by the event's id."""
        return Place(self.partition, self.event.offset, self.event.id)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """What stands where an event should, and why it is none; its place as far as that can be read."""

    place: Place
    session: tuple[str, str] | None
    reason: str


Entries = AsyncIterator[LogEntry | Unreadable]


def read_lines(lines: Iterable[bytes]) -> Iterable[LogEntry | Unreadable]:
    """The entries of lines of `pml events dump --json`.

    A line has no partition: it is that of the session's key. Records without a session (`partition.taken`)
    have no such key and are passed over.

    Raises:
        UndecodableRecord: no line at all is an event.
    """
    events = broken = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event, fields = decode_event_fields(line)
        except PMLError as error:
            broken += 1
            yield _unreadable(line, f"line {number}", error)
            continue
        events += 1
        if event.session_id:
            partition = partition_for(session_key(event.tenant, event.session_id))
            yield LogEntry(partition, event, fields)
    if broken and not events:
        raise UndecodableRecord("none of its lines is an event of `pml events dump --json`")


def _unreadable(value: bytes | None, called: str, error: PMLError, place: Place | None = None) -> Unreadable:
    """What can still be read of it: session, offset, id."""
    fields = _object(value)
    tenant, session, offset, name = (fields.get(key) for key in ("tenant", "session_id", "offset", "id"))
    named = (tenant, session) if isinstance(tenant, str) and isinstance(session, str) else None
    if place is None:
        partition = partition_for(session_key(*named)) if named else UNKNOWN
        place = Place(partition, offset if isinstance(offset, int) else UNKNOWN, "")
    key = f"{called}: {name}" if isinstance(name, str) else called
    return Unreadable(place._replace(key=key), named, error.message)


def _object(value: bytes | None) -> dict[str, Any]:
    try:
        found = orjson.loads(value or b"")
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


async def read_store(store: Store) -> Entries:
    """The entries of the store as it is now, partition by partition, page by page.

    Raises:
        StoreUnavailable, QueryError
    """
    after = BEFORE_ALL
    while rows := await asyncio.to_thread(stored_page, store, after, PAGE_EVENTS):
        for row in rows:
            yield _stored_entry(row)
        after = (rows[-1][0], rows[-1][1])


def _stored_entry(row: tuple[Any, ...]) -> LogEntry | Unreadable:
    partition, fields = row[0], event_fields(row)
    life = (fields["tenant"], fields["session_id"], fields["epoch"], fields["seq"])
    name = event_id(*life) if fields["session_id"] else f"partition/{partition}:{fields['offset']}"
    value = orjson.dumps({**fields, "id": name})
    try:
        return LogEntry(partition, *decode_event_fields(value))
    except PMLError as error:
        return _unreadable(value, "the row", error, Place(partition, fields["offset"], name))


async def within(entries: Entries, since_ms: int | None, until_ms: int | None) -> Entries:
    """Of each partition what lies from the first event at or after `since_ms` to the last before `until_ms`.

    A stretch without holes: clocks of two leaders may differ, and order is that of the log.
    """
    begun: set[int] = set()
    ended: set[int] = set()
    async for entry in entries:
        partition = entry.place.partition
        at_ms = from_rfc3339(entry.event.occurred_at) if isinstance(entry, LogEntry) else None
        if since_ms is None or (at_ms is not None and at_ms >= since_ms):
            begun.add(partition)
        if until_ms is not None and at_ms is not None and at_ms >= until_ms:
            ended.add(partition)
        if partition in begun and partition not in ended:
            yield entry


async def read_log(settings: Settings) -> Entries:
    """The entries of the log up to its end as it is now, partition by partition.

    Belongs to no group and commits nothing, so nobody else notices.

    Raises:
        BrokerUnavailable: no broker answers.
    """
    topic = settings.topics.events
    pairs = [(topic, number) for number in range(SESSION_PARTITIONS)]
    tail = Tails(client_options(settings))
    await tail.start()
    try:
        ends, starts = await tail.ends(pairs), await tail.beginnings(pairs)
        for pair in pairs:
            async for records in tail.read(*pair, starts[pair], ends[pair]):
                for record in records:
                    if counted(record):
                        yield _read_record(pair[1], record)
    finally:
        await tail.stop()


def _read_record(partition: int, record: Any) -> LogEntry | Unreadable:
    try:
        return LogEntry(partition, *counted_fields(record))
    except LogCorrupted as error:
        return _unreadable(record.value, "the record", error, Place(partition, record.offset, ""))
