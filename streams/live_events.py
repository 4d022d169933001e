"""Events of sessions as they happen: one consumer of the log for all in this process who wait for one.

A consumer of one's own takes some 40 ms to begin; for a single call that is longer than the call.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition

from pml.schemas.errors import BrokerUnavailable, PMLError
from pml.schemas.events import Event
from pml.schemas.identifiers import session_key
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.connection import client_options
from pml.streams.log.reader import counted, counted_event
from pml.streams.reachability import broker_errors
from pml.streams.settings import Settings
from pml.streams.sources import require_topic

# How long one look for records waits: only bounds how fast an idle reader notices that it is one.
POLL_MS = 500
# Reading the whole log costs something also while nobody waits; beginning again costs 40 ms.
IDLE_S = 300.0
log = structlog.get_logger("pml.live_events")


class Watcher:
    """Somebody who waits for events of a session; `failed` is set where no more can come."""

    def __init__(self, on_event: Callable[[Event], None]) -> None:
        self._on_event = on_event
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def see(self, event: Event) -> None:
        """One more event."""
        self._on_event(event)

    def fail(self, error: PMLError) -> None:
        """No more come."""
        if not self.failed.done():
            self.failed.set_exception(error)


class LiveEvents:
    """Hands events of the sessions that are watched to whoever watches; reads only while somebody does.

    Args:
        idle_s: how long it goes on reading when nobody watches any more.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        idle_s: float = IDLE_S,
        new_consumer: Callable[..., Any] = AIOKafkaConsumer,
    ) -> None:
        self._settings, self._idle_s, self._new_consumer = settings, idle_s, new_consumer
        self._watchers: dict[bytes, set[Watcher]] = {}
        self._beginning = asyncio.Lock()
        self._reading: asyncio.Task[None] | None = None
        self._left_at_s = 0.0

    @asynccontextmanager
    async def watching(
        self, tenant: str, session_id: str, on_event: Callable[[Event], None]
    ) -> AsyncIterator[Watcher]:
        """Call `on_event` with every event of a session that the log takes from now on, in order.

        Raises:
            BrokerUnavailable: no broker answers.
            TopicMismatch: the broker has no log of events.
        """
        key, watcher = session_key(tenant, session_id), Watcher(on_event)
        self._watchers.setdefault(key, set()).add(watcher)
        try:
            await self._begun()
            yield watcher
        finally:
            self._leave(key, watcher)

    async def close(self) -> None:
        """Read no more."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    def _leave(self, key: bytes, watcher: Watcher) -> None:
        if not watcher.failed.cancel() and not watcher.failed.cancelled():
            watcher.failed.exception()  # seen, also where nobody waited for it
        self._watchers[key].discard(watcher)
        if not self._watchers[key]:
            del self._watchers[key]
        self._left_at_s = asyncio.get_running_loop().time()

    async def _begun(self) -> None:
        async with self._beginning:
            if self._reading is None or self._reading.done():
                consumer = await self._at_the_end()
                self._reading = asyncio.create_task(self._read(consumer))

    async def _at_the_end(self) -> Any:
        """A consumer of all partitions, at their ends."""
        consumer = self._new_consumer(
            **client_options(self._settings), auto_offset_reset="latest", enable_auto_commit=False
        )
        topic = self._settings.topics.events
        try:
            async with broker_errors(self._settings):
                await consumer.start()
                await require_topic(consumer, topic)
                consumer.assign([TopicPartition(topic, number) for number in range(SESSION_PARTITIONS)])
                await consumer.seek_to_end()
        except BaseException:
            await consumer.stop()
            raise
        return consumer

    async def _read(self, consumer: Any) -> None:
        """Until nobody has watched for a while, or the broker fails; whoever comes then begins anew."""
        try:
            while self._watchers or asyncio.get_running_loop().time() - self._left_at_s < self._idle_s:
                for records in (await consumer.getmany(timeout_ms=POLL_MS)).values():
                    for record in records:
                        self._hand_over(record)
        except Exception as error:
            log.warning("the log is not followed any more", error=str(error), exc_info=True)
            self._fail(BrokerUnavailable(f"the log could not be followed: {type(error).__name__}; try again"))
        finally:
            self._reading = None
            await consumer.stop()

    def _hand_over(self, record: Any) -> None:
        watchers = self._watchers.get(record.key)
        if not watchers or not counted(record):
            return
        try:
            event = counted_event(record)
        except PMLError as error:
            for watcher in tuple(watchers):
                watcher.fail(error)
            return
        for watcher in tuple(watchers):
            watcher.see(event)

    def _fail(self, error: PMLError) -> None:
        for watchers in self._watchers.values():
            for watcher in watchers:
                watcher.fail(error)
