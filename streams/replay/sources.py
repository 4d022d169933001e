"""Where a replay reads the events that count: the log, or a file of `pml events dump --json`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any

from pml.schemas.codec import decode_event, encode, open_envelope, upcast
from pml.schemas.errors import PMLError, UndecodableRecord
from pml.schemas.events import EVENTS, Event
from pml.schemas.identifiers import session_key
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.connection import client_options, partition_for
from pml.streams.log.reader import counted, counted_event
from pml.streams.log.tail import Tails
from pml.streams.replay.report import Place
from pml.streams.settings import Settings


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


def log_entry(partition: int, event: Event, value: bytes | None) -> LogEntry:
    """The entry of an event and the bytes it was read from."""
    return LogEntry(partition, event, upcast(open_envelope(value), EVENTS[event.type].VERSION).fields)


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
            event = decode_event(line)
        except PMLError as error:
            raise UndecodableRecord(
                f"line {number} is no event of `pml events dump --json`: {error.message}"
            ) from error
        if event.session_id:
            partition = partition_for(session_key(event.tenant, event.session_id))
            yield log_entry(partition, event, encode(event))


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
                        yield log_entry(pair[1], counted_event(record), record.value)
    finally:
        await tail.stop()
