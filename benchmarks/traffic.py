"""Sending at a pace that does not wait for answers, and noting when they come."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

from aiokafka import AIOKafkaConsumer, TopicPartition

from pml.schemas.errors import PMLError
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.connection import client_options
from pml.streams.settings import Settings
from pml.streams.sources import opened

# What did not come back by then is lost, or the rate is more than the other side can do.
DRAIN_TIMEOUT_S = 60.0
POLL_MS = 200


class NotAnswered(PMLError):
    """Something that was sent did not come back."""

    code = "NOT_ANSWERED"


class Traffic(ABC):
    """Sends messages and reads topics from their ends in the background, in one event loop.

    Args:
        topics: what is read; a subclass says what a record means (`_see`) and how one is sent (`_send`).
    """

    def __init__(self, settings: Settings, topics: Sequence[str]) -> None:
        self.settings = settings
        self._topics = topics
        self._due_at: dict[str, float] = {}
        self._open: set[str] = set()
        self._emptied = asyncio.Event()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            consumer = AIOKafkaConsumer(**client_options(self.settings), enable_auto_commit=False)
            await stack.enter_async_context(opened(consumer, self.settings))
            pairs = [
                TopicPartition(topic, number)
                for topic in self._topics
                for number in range(SESSION_PARTITIONS)
            ]
            consumer.assign(pairs)
            for pair, end in (await consumer.end_offsets(pairs)).items():
                consumer.seek(pair, end)
            await self._start(stack)
            self._reading = asyncio.create_task(self._read(consumer))
            stack.callback(self._reading.cancel)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def play(self, due_s: Sequence[float]) -> None:
        """Send one message at each of these times from now on, then wait until all have come back.

        Raises:
            NotAnswered: some had not a minute after the last was sent.
        """
        began = time.perf_counter()
        self._due_at.clear()
        async with asyncio.TaskGroup() as sending:
            for number, due in enumerate(due_s):
                await asyncio.sleep(max(0.0, began + due - time.perf_counter()))
                name = self._name(number)
                self._due_at[name] = began + due
                self._open.add(name)
                sending.create_task(self._send(name))
        await self._drained()

    async def _drained(self) -> None:
        waiting = asyncio.create_task(self._until_empty())
        await asyncio.wait((waiting, self._reading), timeout=DRAIN_TIMEOUT_S, return_when="FIRST_COMPLETED")
        waiting.cancel()
        if self._reading.done():
            self._reading.result()
        if self._open:
            raise NotAnswered(f"{len(self._open)} of {len(self._due_at)} messages did not come back")

    async def _until_empty(self) -> None:
        while self._open:
            self._emptied.clear()
            await self._emptied.wait()

    async def _read(self, consumer: Any) -> None:
        while True:
            fetched = await consumer.getmany(timeout_ms=POLL_MS)
            now = time.perf_counter()
            # What comes first in a message's life is looked at first where one poll brings both.
            for pair in sorted(fetched, key=lambda pair: self._topics.index(pair.topic)):
                for record in fetched[pair]:
                    self._see(record, now)

    def _answered(self, name: str) -> None:
        self._open.discard(name)
        if not self._open:
            self._emptied.set()

    @abstractmethod
    async def _start(self, stack: AsyncExitStack) -> None:
        """Open what is sent with."""

    @abstractmethod
    def _name(self, number: int) -> str:
        """A name for the message of this number that no other message ever had."""

    @abstractmethod
    async def _send(self, name: str) -> None:
        """Send the message of this name."""

    @abstractmethod
    def _see(self, record: Any, now: float) -> None:
        """Look at a record that was read at this time (seconds of the performance counter)."""
