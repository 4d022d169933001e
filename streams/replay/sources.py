"""Where a replay reads the events that count: the log, the store, or a file of `pml events dump --json`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import orjson

from pml.clickhouse.client import Store
from pml.clickhouse.replay import stored_page
from pml.clickhouse.rows import EVENT_COLUMNS, event_fields
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

BEFORE_ALL = -1
PAGE_EVENTS = 5_000
LINES_AT_ONCE = 1_000
# An event bears the time of what caused it, which a broker wrote whose clock may go before that of the log's.
CLOCKS_APART_MS = 600_000
# The id of a record that belongs to a partition and to no session: `partition/3:268`.
_OF_PARTITION = re.compile(r"partition/([0-9]{1,4}):[0-9]{1,19}")


class LogEntry(NamedTuple):
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


Entry = LogEntry | Unreadable
Batches = AsyncGenerator[Iterable[Entry], None]
"""Read at once, but decoded one after the other: an entry that is folded and gone before the next one comes
never leaves the processor's caches, which is worth a quarter of a replay."""
OnRead = Callable[[int], None]
"""Is told how many more records, rows or lines were read."""


def unheard(_: int) -> None:
    """Nobody wants to know how much was read."""


async def read_file(lines: Iterable[bytes], on_read: OnRead = unheard) -> Batches:
    """The entries of a file, as `read_lines` reads them.

    Raises:
        UndecodableRecord: no line at all is an event.
    """
    entries = read_lines(lines)
    while batch := [*islice(entries, LINES_AT_ONCE)]:
        on_read(len(batch))
        yield batch


def read_lines(lines: Iterable[bytes]) -> Iterator[Entry]:
    """The entries of lines of `pml events dump --json`.

    A line has no partition: it is that of the session's key, and of a record without a session
    (`partition.taken`) the one in its id; one whose id names none is passed over.

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
        partition = _partition_of(event)
        if partition is not None:
            yield LogEntry(partition, event, fields)
    if broken and not events:
        raise UndecodableRecord("none of its lines is an event of `pml events dump --json`")


def _partition_of(event: Event) -> int | None:
    if event.session_id:
        return partition_for(session_key(event.tenant, event.session_id))
    named = _OF_PARTITION.fullmatch(event.id)
    partition = int(named[1]) if named else SESSION_PARTITIONS
    return partition if partition < SESSION_PARTITIONS else None


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


async def read_store(store: Store, partition: int, on_read: OnRead = unheard) -> Batches:
    """The entries of a partition in the store as it is now, page by page.

    Raises:
        StoreUnavailable, QueryError
    """
    after = BEFORE_ALL
    while rows := await asyncio.to_thread(stored_page, store, partition, after, PAGE_EVENTS):
        on_read(len(rows))
        yield map(stored_entry, rows)
        after = rows[-1][1]


def stored_entry(row: tuple[Any, ...]) -> Entry:
    """The event of a row of `EVENT_COLUMNS`, or what stands where it should."""
    partition = row[0]
    try:
        fields = event_fields(row)
    except orjson.JSONDecodeError:
        stored = dict(zip(EVENT_COLUMNS, row, strict=True))
        place = Place(partition, stored["log_offset"], "the row")
        return Unreadable(place, (stored["tenant"], stored["session_id"]), "its data are no JSON")
    life = (fields["tenant"], fields["session_id"], fields["epoch"], fields["seq"])
    name = event_id(*life) if fields["session_id"] else f"partition/{partition}:{fields['offset']}"
    value = orjson.dumps({**fields, "id": name})
    try:
        return LogEntry(partition, *decode_event_fields(value))
    except PMLError as error:
        return _unreadable(value, "the row", error, Place(partition, fields["offset"], name))


async def within(
    source: Batches, since_ms: int | None, until_ms: int | None, only: int | None = None
) -> Batches:
    """Of each partition what lies from the first event at or after `since_ms` to the last before `until_ms`.

    A stretch without holes: clocks of two leaders may differ, and order is that of the log. Of a source that
    has `only` this partition nothing is read beyond it.
    """
    begun: set[int] = set()
    ended: set[int] = set()

    def lies_within(entry: Entry) -> bool:
        partition = entry.place.partition
        at_ms = _time_ms(entry)
        if since_ms is None or (at_ms is not None and at_ms >= since_ms):
            begun.add(partition)
        if until_ms is not None and at_ms is not None and at_ms >= until_ms:
            ended.add(partition)
        return partition in begun and partition not in ended

    everything = since_ms is None and until_ms is None
    async with aclosing(source):
        async for entries in source:
            yield entries if everything else filter(lies_within, entries)
            if only in ended:
                return


def _time_ms(entry: Entry) -> int | None:
    """When it occurred, Unix time; None where that is not to be read."""
    try:
        return from_rfc3339(entry.event.occurred_at) if isinstance(entry, LogEntry) else None
    except ValueError:
        return None


async def topic_spans(
    settings: Settings, topic: str, partitions: Iterable[int], since_ms: int | None = None
) -> dict[int, range]:
    """The offsets that partitions of a topic hold now.

    Args:
        since_ms: leave out what was written well before that time; what bears it or a later one stays.

    Raises:
        BrokerUnavailable: no broker answers.
    """
    pairs = [(topic, number) for number in partitions]
    async with _tails(settings) as tail:
        ends = await tail.ends(pairs)
        if since_ms is None:
            starts: Mapping[tuple[str, int], int | None] = await tail.beginnings(pairs)
        else:
            starts = await tail.first_since(pairs, max(0, since_ms - CLOCKS_APART_MS))
    return {pair[1]: range(_or(starts[pair], ends[pair]), ends[pair]) for pair in pairs}


def _or(offset: int | None, end: int) -> int:
    """What was written after the end was asked for is no part of it."""
    return end if offset is None else min(offset, end)


async def read_log(settings: Settings, partition: int, offsets: range, on_read: OnRead = unheard) -> Batches:
    """The entries of a partition of the log at these offsets.

    Belongs to no group and commits nothing, so nobody else notices.

    Raises:
        BrokerUnavailable: no broker answers.
        OffsetGone: the log does not hold the first of them any more.
    """
    async with aclosing(read_records(settings, settings.topics.events, partition, offsets)) as read:
        async for records in read:
            on_read(len(records))
            yield (_read_record(partition, record) for record in records if counted(record))


async def read_records(
    settings: Settings, topic: str, partition: int, offsets: range
) -> AsyncGenerator[list[Any], None]:
    """The records of a partition of a topic at these offsets, in lists as they come.

    Raises:
        BrokerUnavailable: no broker answers.
        OffsetGone: the topic does not hold the first of them any more.
    """
    async with _tails(settings) as tail:
        async for records in tail.read(topic, partition, offsets.start, offsets.stop):
            yield records


@asynccontextmanager
async def _tails(settings: Settings) -> AsyncIterator[Tails]:
    tail = Tails(client_options(settings), consumers=1)
    await tail.start()
    try:
        yield tail
    finally:
        await tail.stop()


def _read_record(partition: int, record: Any) -> Entry:
    try:
        return LogEntry(partition, *counted_fields(record))
    except LogCorrupted as error:
        return _unreadable(record.value, "the record", error, Place(partition, record.offset, ""))
