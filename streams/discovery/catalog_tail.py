"""`pml.catalog`, read on from where it was read to: all at first, then what is new."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from pml.schemas.errors import BrokerUnavailable
from pml.streams.connection import client_options
from pml.streams.reachability import broker_errors
from pml.streams.settings import Settings
from pml.streams.sources import require_topic

# Somebody waits for the answer. A catalog of some thousand records is read in less than a second.
CATCH_UP_S = 5.0
POLL_MS = 250
# The last fetch of a read is still under way when the next question comes.
FETCH_WAIT_MS = 20


@dataclass(frozen=True, slots=True)
class News:
    """Records that were not read before.

    `anew`: from the beginning, whatever was known; `whole`: up to the end that the topic had.
    """

    records: list[Any]
    anew: bool
    whole: bool


class CatalogTail:
    """One consumer that stays; whoever asks gets what the topic holds by then and has not had yet."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pair = TopicPartition(settings.topics.catalog, 0)
        self._consumer: Any = None

    @property
    def fetches(self) -> bool:
        """Whether records are being asked for."""
        return self._consumer is not None and self._pair not in self._consumer.paused()

    async def read(self) -> News:
        """What is new; never two calls at once.

        Raises:
            BrokerUnavailable: no broker answers; the next read begins anew.
            TopicMismatch: the broker has no catalog.
        """
        anew = self._consumer is None
        if self._consumer is None:
            self._consumer = await self._connected()
        try:
            return await self._news(anew)
        except BaseException as error:
            await self.close()  # what it gave until then is lost
            if isinstance(error, (KafkaError, TimeoutError)):
                raise BrokerUnavailable(f"the catalog cannot be read: {error!r}") from error
            raise

    async def _news(self, anew: bool) -> News:
        records: list[Any] = []
        async with asyncio.timeout(CATCH_UP_S):
            end = (await self._consumer.end_offsets([self._pair]))[self._pair]
        position = await self._consumer.position(self._pair)
        if position < end:
            records, position = await self._until(end)
        return News(records, anew, position >= end)

    async def _until(self, end: int) -> tuple[list[Any], int]:
        """The records up to an offset, as far as they come in time, and where that is.

        Only meanwhile anything is fetched: on the same connection the question where the topic ends would
        wait behind a fetch that waits for records.
        """
        records: list[Any] = []
        self._consumer.resume(self._pair)
        with suppress(TimeoutError):
            async with asyncio.timeout(CATCH_UP_S):
                while await self._consumer.position(self._pair) < end:
                    found = await self._consumer.getmany(self._pair, timeout_ms=POLL_MS)
                    records += found.get(self._pair, [])
        self._consumer.pause(self._pair)
        return records, await self._consumer.position(self._pair)

    async def close(self) -> None:
        """Close the consumer; the next read begins anew."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await consumer.stop()

    async def _connected(self) -> Any:
        consumer = AIOKafkaConsumer(
            **client_options(self._settings),
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=FETCH_WAIT_MS,
        )
        try:
            async with broker_errors(self._settings), asyncio.timeout(CATCH_UP_S):
                await consumer.start()
                await require_topic(consumer, self._pair.topic)
                consumer.assign([self._pair])
                consumer.pause(self._pair)
                await consumer.seek_to_beginning(self._pair)
        except TimeoutError:
            await consumer.stop()
            raise BrokerUnavailable(f"the broker does not answer within {CATCH_UP_S:g} s") from None
        except BaseException:
            await consumer.stop()
            raise
        return consumer
