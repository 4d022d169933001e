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
from pml.streams.replay.report import Place
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
    def place(self) -> Place:
        """Its place, called by the event's id."""
        return Place(self.partition, self.event.offset, self.event.id)


def read_lines(lines: Iterable[bytes]) -> Iterable[LogEntry]:
    """The entries of lines of `pml events dump --json`.

    A line has no partition: it is that of the session's key. Records without a session (`partition.taken`)
    have no such key and are passed over.

    Raises:
        UndecodableRecord: a line is no event; the error says which line.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event, fields = decode_event_fields(line)
        except PMLError as error:
            raise UndecodableRecord(
                f"line {number} is no event of `pml events dump --json`: {error.message}"
            ) from error
        if event.session_id:
            partition = partition_for(session_key(event.tenant, event.session_id))
            yield LogEntry(partition, event, fields)


async def read_store(store: Store) -> AsyncIterator[LogEntry]:
    """The entries of the store as it is now, partition by partition, page by page.

    Raises:
        StoreUnavailable, QueryError
        LogCorrupted: an event that this release cannot read.
    """
    after = BEFORE_ALL
    while rows := await asyncio.to_thread(stored_page, store, after, PAGE_EVENTS):
        for row in rows:
            yield _stored_entry(row)
        after = (rows[-1][0], rows[-1][1])


def _stored_entry(row: tuple[Any, ...]) -> LogEntry:
    partition, fields = row[0], event_fields(row)
    life = (fields["tenant"], fields["session_id"], fields["epoch"], fields["seq"])
    name = event_id(*life) if fields["session_id"] else f"partition/{partition}:{fields['offset']}"
    value = orjson.dumps({**fields, "id": name})
    try:
        return LogEntry(partition, *decode_event_fields(value))
    except PMLError as error:
        raise LogCorrupted(f"the store has an event that cannot be read: {name}: {error.message}") from error


async def within(
    entries: AsyncIterator[LogEntry], since_ms: int | None, until_ms: int | None
) -> AsyncIterator[LogEntry]:
    """Of each partition what lies from the first event at or after `since_ms` to the last before `until_ms`.

    A stretch without holes: clocks of two leaders may differ, and order is that of the log.
    """
    begun: set[int] = set()
    ended: set[int] = set()
    async for entry in entries:
        at_ms = from_rfc3339(entry.event.occurred_at)
        if since_ms is None or at_ms >= since_ms:
            begun.add(entry.partition)
        if until_ms is not None and at_ms >= until_ms:
            ended.add(entry.partition)
        if entry.partition in begun and entry.partition not in ended:
            yield entry


async def read_log(settings: Settings) -> AsyncIterator[LogEntry]:
    """The entries of the log up to its end as it is now, partition by partition.

    Belongs to no group and commits nothing, so nobody else notices.

    Raises:
        BrokerUnavailable: no broker answers.
        LogCorrupted: an event that this release cannot read.
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
                        yield LogEntry(pair[1], *counted_fields(record))
    finally:
        await tail.stop()
