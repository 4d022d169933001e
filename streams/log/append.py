"""Appending to a partition that one owner writes, with the offset it expects (DESIGN §2, rules 1 and 3).

The records of one append are one Kafka record batch: whole or not at all. Each record carries the offset
it was written for, so a batch that lands elsewhere is void for every reader. What became of a batch is
known, or it is in doubt, and then only reading the partition tells.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError, RecordListTooLargeError

from pml.schemas.errors import BrokerUnavailable, PMLError
from pml.schemas.topics import LOG_BYTES_MAX

BATCH_BYTES = 1024 * 1024
# Room for the header of a batch and for what a record costs beside key, value and headers.
BATCH_OVERHEAD_BYTES = 4 * 1024
RECORD_OVERHEAD_BYTES = 64
# An acknowledgement that is late by more than this never came in any drill (ORCHESTRATOR.md).
APPEND_TIMEOUT_S = 8.0
# Batches of other partitions on a producer that is replaced get this long to be acknowledged.
STOP_TIMEOUT_S = 10.0
# A producer that never started has nothing to wait for.
CLOSE_TIMEOUT_S = 1.0


class Overtaken(PMLError):
    """Somebody else appended first: the batch lies elsewhere and is void."""

    code = "OVERTAKEN"
    retryable = True


class InDoubt(PMLError):
    """Nobody knows whether the batch landed: read the partition to find out."""

    code = "APPEND_IN_DOUBT"
    retryable = True


class EventsTooLarge(PMLError):
    """What one input gives does not fit one batch."""

    code = "EVENTS_TOO_LARGE"


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A record to write; `headers` name the offset it is written for where that counts."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]] = ()

    @property
    def size(self) -> int:
        """Its bytes in a batch, a little too many."""
        headers = sum(len(name) + len(value) + 8 for name, value in self.headers)
        return len(self.key or b"") + len(self.value or b"") + headers + RECORD_OVERHEAD_BYTES


def cut(records: Iterable[Outgoing], limit: int = BATCH_BYTES) -> Iterator[list[Outgoing]]:
    """The records in batches of at most `limit` bytes; a larger record is a batch of its own."""
    batch: list[Outgoing] = []
    size = 0
    for record in records:
        if batch and size + record.size > limit:
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += record.size
    if batch:
        yield batch


class Appender:
    """One idempotent producer for whole batches, replaced after any error.

    Args:
        options: keyword arguments of the producer (`pml.streams.connection.producer_options`).
        timeout_s: how long an acknowledgement may take before the append is in doubt.
    """

    def __init__(
        self,
        options: dict[str, Any],
        *,
        timeout_s: float = APPEND_TIMEOUT_S,
        new_producer: Callable[..., Any] = AIOKafkaProducer,
    ) -> None:
        self._options = {**options, "max_batch_size": LOG_BYTES_MAX}
        self._timeout_s = timeout_s
        self._new_producer = new_producer
        self._producer: Any = None
        self._replacing = asyncio.Lock()
        self._retired: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Connect before the first append: a new producer takes 0.1 s.

        Raises:
            BrokerUnavailable: no broker answers.
        """
        await self._current()

    async def stop(self) -> None:
        """Let go of the producer and of those it replaced."""
        producer, self._producer = self._producer, None
        if producer is not None:
            self._retire(producer)
        await asyncio.gather(*self._retired, return_exceptions=True)

    async def append(self, topic: str, partition: int, base: int, records: Sequence[Outgoing]) -> None:
        """Append the records as one batch that is to begin at offset `base`.

        (1) fill the batch, (2) send it, (3) await its acknowledgement, (4) compare the offset.

        Raises:
            Overtaken: it landed elsewhere and is void.
            InDoubt: no acknowledgement, or an error of the producer; it may land yet.
            EventsTooLarge: the records do not fit one batch; nothing was sent.
            BrokerUnavailable: there is no producer; nothing was sent.
        """
        offset = await self.send(topic, partition, records)
        if offset != base:
            raise Overtaken(
                f"the batch for {topic}/{partition} at {base} landed at {offset}: somebody else wrote there",
                expected=base,
                actual=offset,
            )

    async def send(self, topic: str, partition: int, records: Sequence[Outgoing]) -> int:
        """Append the records as one batch wherever the partition ends now; its first offset.

        Raises:
            InDoubt, EventsTooLarge, BrokerUnavailable: as for `append`.
        """
        async with self.producer() as producer:
            batch = _filled(producer.create_batch(), records)
            async with asyncio.timeout(self._timeout_s):
                acknowledged = await producer.send_batch(batch, topic, partition=partition)
                return int((await acknowledged).offset)

    @asynccontextmanager
    async def producer(self) -> AsyncIterator[Any]:
        """The producer, for one use; after any error in it there will be another.

        Raises:
            InDoubt: the use ended with an error of Kafka, or timed out.
            EventsTooLarge: the broker refuses that much at once.
            BrokerUnavailable: there is no producer.
        """
        producer = await self._current()
        try:
            yield producer
        except EventsTooLarge:
            raise
        except (MessageSizeTooLargeError, RecordListTooLargeError) as error:
            self._renew(producer)
            raise EventsTooLarge(f"the broker refuses that much at once: {error}") from error
        except (KafkaError, TimeoutError, OSError, AssertionError) as error:
            self._renew(producer)
            raise InDoubt(f"no acknowledgement: {type(error).__name__} {error}".rstrip()) from error
        except BaseException:
            self._renew(producer)
            raise

    async def _current(self) -> Any:
        if self._producer is not None:
            return self._producer
        async with self._replacing:
            if self._producer is None:
                self._producer = await self._started()
            return self._producer

    async def _started(self) -> Any:
        producer = self._new_producer(**self._options)
        try:
            async with asyncio.timeout(self._timeout_s):
                await producer.start()
        except (Exception, asyncio.CancelledError) as error:  # one that is only dropped can await nothing
            await abandon(producer, CLOSE_TIMEOUT_S)
            if isinstance(error, (KafkaError, TimeoutError, OSError)):
                raise BrokerUnavailable(f"no broker answers a new producer: {error}") from error
            raise
        return producer

    def _renew(self, failed: Any) -> None:
        """After an error its sequence numbers may be wrong for good: the next append gets a new one."""
        if self._producer is failed:
            self._producer = None
            self._retire(failed)

    def _retire(self, producer: Any) -> None:
        task = asyncio.create_task(abandon(producer, STOP_TIMEOUT_S))
        self._retired.add(task)
        task.add_done_callback(self._retired.discard)


async def abandon(producer: Any, timeout_s: float) -> None:
    """Stop a producer; what is still unacknowledged after `timeout_s` is let go.

    An idempotent producer would else repeat its batches for as long as the broker is away.
    """
    try:
        async with asyncio.timeout(timeout_s):
            await producer.stop()
    except (KafkaError, TimeoutError, OSError):
        await producer._sender.close()
        await producer.client.close()


def _filled(batch: Any, records: Sequence[Outgoing]) -> Any:
    for record in records:
        headers = list(record.headers)
        added = batch.append(timestamp=None, key=record.key, value=record.value, headers=headers)
        # The first record is always taken, however large.
        if added is None or batch.size() > LOG_BYTES_MAX:
            raise EventsTooLarge(f"{len(records)} records do not fit one batch of {LOG_BYTES_MAX} bytes")
    batch.close()
    return batch
