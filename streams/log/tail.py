"""Reading a partition from an offset to its end, or a few records of it, with standing consumers.

A consumer that stands reads 10 records in 3.4 ms and 10,000 in 20 ms; a new one takes 44 ms for those
(ORCHESTRATOR.md). Nothing here commits or belongs to a group.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import IllegalStateError, KafkaError, OffsetOutOfRangeError

from pml.schemas.errors import BrokerUnavailable, PMLError

# One partition at a time and consumer: four read in parallel and idle at next to nothing.
CONSUMERS = 4
# A broker that was killed is back within 5 s; one that says nothing for longer is away.
SILENCE_S = 20.0
POLL_MS = 500
# What is read exists; a longer poll that waits for more would hold up the next read of that broker.
FETCH_WAIT_MS = 5
# Reading on through a gap of this many records is cheaper than another seek.
SPAN_GAP = 500


class OffsetGone(PMLError):
    """The offset is past the topic's retention, or was never written."""

    code = "OFFSET_GONE"


class Tails:
    """A few standing consumers; each reads one partition at a time.

    Args:
        options: keyword arguments of every client (`pml.streams.connection.client_options`).
    """

    def __init__(
        self,
        options: dict[str, Any],
        *,
        consumers: int = CONSUMERS,
        silence_s: float = SILENCE_S,
        new_consumer: Callable[..., Any] = AIOKafkaConsumer,
    ) -> None:
        self._options = {
            **options,
            "enable_auto_commit": False,
            "auto_offset_reset": "none",
            "fetch_max_wait_ms": FETCH_WAIT_MS,
        }
        self._free: asyncio.LifoQueue[Any] = asyncio.LifoQueue()
        self._consumers = consumers
        self._silence_s = silence_s
        self._new_consumer = new_consumer
        self._standing: set[Any] = set()

    async def start(self) -> None:
        """Connect one consumer now, the others when they are needed.

        Raises:
            BrokerUnavailable: no broker answers.
        """
        for _ in range(self._consumers):
            self._free.put_nowait(None)
        async with self._consumer():
            pass

    async def stop(self) -> None:
        """Close every consumer."""
        standing, self._standing = self._standing, set()
        await asyncio.gather(*(consumer.stop() for consumer in standing), return_exceptions=True)

    async def end(self, topic: str, partition: int) -> int:
        """The offset that the next record will get.

        Raises:
            BrokerUnavailable: the broker does not answer.
        """
        return (await self.ends([(topic, partition)]))[topic, partition]

    async def ends(self, partitions: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """The ends of several partitions, in one request a broker.

        Raises:
            BrokerUnavailable: the broker does not answer.
        """
        wanted = [TopicPartition(*pair) for pair in partitions]
        return await self._asked(lambda consumer: consumer.end_offsets(wanted))

    async def beginnings(self, partitions: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """The first offsets that several partitions still hold.

        Raises:
            BrokerUnavailable: the broker does not answer.
        """
        wanted = [TopicPartition(*pair) for pair in partitions]
        return await self._asked(lambda consumer: consumer.beginning_offsets(wanted))

    async def first_since(
        self, partitions: Iterable[tuple[str, int]], time_ms: int
    ) -> dict[tuple[str, int], int | None]:
        """The first offsets of several partitions that were written then or later; None: there is none.

        Args:
            time_ms: milliseconds since 1970, from 0.

        Raises:
            BrokerUnavailable: the broker does not answer.
        """
        wanted = {TopicPartition(*pair): time_ms for pair in partitions}
        found = await self._asked(lambda consumer: consumer.offsets_for_times(wanted))
        return {pair: at and at.offset for pair, at in found.items()}

    async def _asked(
        self, ask: Callable[[Any], Awaitable[dict[TopicPartition, Any]]]
    ) -> dict[tuple[str, int], Any]:
        """What a consumer says of partitions, by topic and number."""
        async with self._consumer() as consumer:
            async with asyncio.timeout(self._silence_s):
                found = await ask(consumer)
        return {(pair.topic, pair.partition): told for pair, told in found.items()}

    async def read(self, topic: str, partition: int, start: int, end: int) -> AsyncIterator[list[Any]]:
        """The records from `start` up to `end` (not included), in lists as they come.

        Raises:
            OffsetGone: `start` is before what the topic holds, or `end` is never reached.
            BrokerUnavailable: the broker says nothing for too long.
        """
        if start >= end:
            return
        pair = TopicPartition(topic, partition)
        async with self._consumer() as consumer:
            consumer.assign([pair])
            consumer.seek(pair, start)
            async for records in self._until(consumer, pair, end):
                yield records

    async def at(self, topic: str, partition: int, offsets: Iterable[int]) -> dict[int, Any]:
        """The records at these offsets; one that is gone is absent.

        Raises:
            BrokerUnavailable: the broker says nothing for too long.
        """
        wanted = frozenset(offsets)
        if not wanted:
            return {}
        key = (topic, partition)
        first = (await self.beginnings([key]))[key]
        last = await self.end(topic, partition)
        found: dict[int, Any] = {}
        for start, end in spans(sorted(offset for offset in wanted if first <= offset < last)):
            with suppress(OffsetGone):
                async for records in self.read(topic, partition, start, end):
                    found.update((record.offset, record) for record in records if record.offset in wanted)
        return found

    async def _until(self, consumer: Any, pair: Any, end: int) -> AsyncIterator[list[Any]]:
        clock = asyncio.get_running_loop().time
        heard_at = clock()
        while await consumer.position(pair) < end:
            records = (await consumer.getmany(pair, timeout_ms=POLL_MS)).get(pair, [])
            if records:
                heard_at = clock()
                yield [record for record in records if record.offset < end]
            elif clock() - heard_at > self._silence_s:
                raise BrokerUnavailable(
                    f"{pair.topic}/{pair.partition} gave nothing up to {end} for {self._silence_s:.0f} s"
                )

    @asynccontextmanager
    async def _consumer(self) -> AsyncIterator[Any]:
        """A consumer for one partition; one that failed is closed and not used again."""
        consumer = await self._free.get()
        try:
            consumer = consumer or await self._started()
            yield consumer
            consumer.pause(*consumer.assignment())
        except BaseException as error:
            failed, consumer = consumer, None  # first: closing it may be cut off
            await self._close(failed)
            if isinstance(error, OffsetOutOfRangeError):
                raise OffsetGone(f"the topic does not hold this offset: {error}") from error
            if isinstance(error, (KafkaError, TimeoutError, OSError, IllegalStateError)):
                raise BrokerUnavailable(f"the broker does not answer a reader: {error!r}") from error
            raise
        finally:
            self._free.put_nowait(consumer)

    async def _started(self) -> Any:
        consumer = self._new_consumer(**self._options)
        self._standing.add(consumer)
        try:
            async with asyncio.timeout(self._silence_s):
                await consumer.start()
        except BaseException:
            await self._close(consumer)
            raise
        return consumer

    async def _close(self, consumer: Any) -> None:
        if consumer is not None:
            self._standing.discard(consumer)
            with suppress(KafkaError, OSError):
                await consumer.stop()


def spans(offsets: list[int], gap: int = SPAN_GAP) -> list[tuple[int, int]]:
    """Ranges (start, end) that cover sorted offsets; those less than `gap` apart share one."""
    ranges: list[tuple[int, int]] = []
    for offset in offsets:
        if ranges and offset - ranges[-1][1] < gap:
            ranges[-1] = (ranges[-1][0], offset + 1)
        else:
            ranges.append((offset, offset + 1))
    return ranges
