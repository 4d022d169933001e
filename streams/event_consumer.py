"""Reading the log of events: of one session or of all, from any place, to the end or for ever."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Literal

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from pml.schemas.events import Event
from pml.schemas.identifiers import DEFAULT_TENANT, session_key
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.connection import client_options, partition_for
from pml.streams.log.reader import counted, counted_event, event_type
from pml.streams.reachability import broker_errors
from pml.streams.settings import Settings
from pml.streams.sources import opened, require_topic, settings_of

# How long one look for records waits: only bounds how fast a cancelled or finished reader notices.
POLL_MS = 500
# Records handed over at once: bounds memory while the caller is slow.
POLL_RECORDS = 500


class EventConsumer:
    """The events that count, typed, in the order of the log (of each partition, where all are read).

    Args:
        source: settings, or the address of a Kafka broker.
        session_id: only this session's events; else those of all sessions.
        start: `beginning` of the log, or its `end` as it is when the consumer is entered.
        until_end: stop at the end of the log as it is when the consumer is entered.
        types: only events of these types; others are not even decoded.

    Raises:
        BrokerUnavailable: no broker answers; `pml up` starts one.
        TopicMismatch: the broker has no log of events.
        LogCorrupted: an event that this release cannot read.
    """

    def __init__(
        self,
        source: Settings | str,
        *,
        session_id: str | None = None,
        tenant: str = DEFAULT_TENANT,
        start: Literal["beginning", "end"] = "beginning",
        until_end: bool = False,
        types: Collection[str] | None = None,
    ) -> None:
        self.settings = settings_of(source)
        self._key = None if session_id is None else session_key(tenant, session_id)
        self._start = start
        self._until_end = until_end
        self._types = None if types is None else frozenset(types)
        self._ends: dict[TopicPartition, int] = {}
        self._pending: deque[ConsumerRecord[bytes, bytes]] = deque()
        topic = self.settings.topics.events
        numbers = range(SESSION_PARTITIONS) if self._key is None else [partition_for(self._key)]
        self._partitions = [TopicPartition(topic, number) for number in numbers]

    async def __aenter__(self) -> EventConsumer:
        self._consumer = AIOKafkaConsumer(
            **client_options(self.settings), auto_offset_reset="earliest", enable_auto_commit=False
        )
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(opened(self._consumer, self.settings))
            async with broker_errors(self.settings):
                await require_topic(self._consumer, self.settings.topics.events)
                self._consumer.assign(self._partitions)
                await self._take_position()
            self._open = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._open.aclose()

    def __aiter__(self) -> EventConsumer:
        return self

    async def __anext__(self) -> Event:
        while True:
            while self._pending:
                record = self._pending.popleft()
                if self._wanted(record):
                    return counted_event(record)
            if self._until_end and await self._at_end():
                raise StopAsyncIteration
            await self._fetch()

    def seek(self, offset: int) -> None:
        """Go on from this offset of the session's partition; only where one session is read."""
        if len(self._partitions) != 1:
            raise ValueError("seek needs a consumer of one session")
        self._pending.clear()
        self._consumer.seek(self._partitions[0], offset)

    async def seek_to_time(self, time_ms: int) -> None:
        """Go on from the first event that the log took at this time or later.

        The ends are asked for first: what is appended after there was found nothing yet is read.

        Raises:
            BrokerUnavailable: no broker answers.
        """
        self._pending.clear()
        async with broker_errors(self.settings):
            ends = await self._consumer.end_offsets(self._partitions)
            found = await self._consumer.offsets_for_times(dict.fromkeys(self._partitions, max(0, time_ms)))
        for partition, place in found.items():
            self._consumer.seek(partition, ends[partition] if place is None else place.offset)

    async def _take_position(self) -> None:
        if self._until_end:
            self._ends = await self._consumer.end_offsets(self._partitions)
        if self._start == "end":
            await self._consumer.seek_to_end()
        else:
            await self._consumer.seek_to_beginning()

    async def _fetch(self) -> None:
        fetched = await self._consumer.getmany(timeout_ms=POLL_MS, max_records=POLL_RECORDS)
        for records in fetched.values():
            self._pending.extend(records)

    async def _at_end(self) -> bool:
        for partition, end in self._ends.items():
            if await self._consumer.position(partition) < end:
                return False
        return True

    def _wanted(self, record: ConsumerRecord[bytes, bytes]) -> bool:
        if self._key is not None and record.key != self._key:
            return False
        if self._ends and record.offset >= self._ends[TopicPartition(record.topic, record.partition)]:
            return False
        return counted(record) and (self._types is None or event_type(record) in self._types)
