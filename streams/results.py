"""Full results of tools: the log keeps their coordinate, the value rests in `pml.tool-outcomes`,
or in the command of the person who knew it."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from types import TracebackType

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError

from pml.schemas.base import Coordinate
from pml.schemas.calls import ToolResult
from pml.schemas.codec import decode_command, decode_outcome
from pml.schemas.commands import TaskResolve
from pml.schemas.errors import BrokerUnavailable, PayloadGone
from pml.streams.connection import client_options
from pml.streams.settings import Settings
from pml.streams.sources import opened, settings_of

# A record that exists comes within milliseconds; a broker that restarts is back within 10 s.
READ_TIMEOUT_S = 20


class ResultReader:
    """Reads full results by their coordinate, over one connection.

    Args:
        source: settings, or the address of a Kafka broker.
    """

    def __init__(self, source: Settings | str) -> None:
        self.settings = settings_of(source)

    async def __aenter__(self) -> ResultReader:
        self._consumer = AIOKafkaConsumer(
            **client_options(self.settings), auto_offset_reset="none", enable_auto_commit=False
        )
        self._open = AsyncExitStack()
        await self._open.enter_async_context(opened(self._consumer, self.settings))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._open.aclose()

    async def read(self, coordinate: Coordinate) -> ToolResult:
        """The full result that rests at this coordinate.

        Raises:
            PayloadGone: it is older than `timeouts.results_ttl_s`, or no result rests there.
            BrokerUnavailable: Kafka did not answer in time.
        """
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                record = await self._record(coordinate)
        except (TimeoutError, KafkaError) as error:
            raise BrokerUnavailable(
                f"the result at {place(coordinate)} could not be read ({type(error).__name__}); try again"
            ) from None
        check_age(self.settings, record.timestamp, coordinate)
        result = result_in(self.settings, record)
        if result is None:
            raise PayloadGone(f"the call at {place(coordinate)} gave no result")
        return result

    async def _record(self, coordinate: Coordinate) -> ConsumerRecord[bytes, bytes]:
        topics = self.settings.topics
        if coordinate.topic not in {topics.tool_outcomes, topics.commands}:
            raise PayloadGone(f"no results rest in {coordinate.topic}")
        partition = TopicPartition(coordinate.topic, coordinate.partition)
        self._consumer.assign([partition])
        first = (await self._consumer.beginning_offsets([partition]))[partition]
        end = (await self._consumer.end_offsets([partition]))[partition]
        if coordinate.offset < first:
            raise expired(coordinate)
        if coordinate.offset >= end:
            raise PayloadGone(f"nothing was ever written at {place(coordinate)}")
        self._consumer.seek(partition, coordinate.offset)
        record = await self._consumer.getone(partition)
        if record.offset != coordinate.offset:
            raise expired(coordinate)
        return record


def check_age(settings: Settings, written_at_ms: int, coordinate: Coordinate) -> None:
    """
    Raises:
        PayloadGone: what was written then is older than `timeouts.results_ttl_s`.
    """
    if time.time_ns() // 1_000_000 - written_at_ms > settings.timeouts.results_ttl_s * 1000:
        raise expired(coordinate)


def result_in(settings: Settings, record: ConsumerRecord[bytes, bytes]) -> ToolResult | None:
    """What a call gave, or what a person said that it gave."""
    if record.topic == settings.topics.tool_outcomes:
        return decode_outcome(record.value).result
    data = decode_command(record.value).data
    return data.as_result() if isinstance(data, TaskResolve) else None


async def read_result(source: Settings | str, coordinate: Coordinate) -> ToolResult:
    """One full result; `ResultReader` reads several over one connection.

    Raises:
        PayloadGone: it is older than `timeouts.results_ttl_s`, or no result rests there.
        BrokerUnavailable: no broker answers.
    """
    async with ResultReader(source) as reader:
        return await reader.read(coordinate)


def place(coordinate: Coordinate) -> str:
    """A coordinate in words for people."""
    return f"{coordinate.topic}, partition {coordinate.partition}, offset {coordinate.offset}"


def expired(coordinate: Coordinate) -> PayloadGone:
    """The error of a value past its retention."""
    return PayloadGone(
        f"the full result at {place(coordinate)} has expired; the log keeps its sanitised form and preview"
    )
