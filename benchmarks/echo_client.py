"""The client of the plain echo: how long a message takes there and back."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.admin import NewTopic

from benchmarks.stack import program
from benchmarks.traffic import Traffic
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.client import new_id
from pml.streams.connection import bootstrap_servers, partition_for, producer_options
from pml.streams.settings import Settings
from pml.streams.sources import opened
from pml.streams.topics import admin_client

MODULE = "benchmarks.baselines.echo"
# About what a call and its outcome come to on the wire.
VALUE = b"x" * 600
# The service imports, connects and answers in a second; a busy machine takes a while.
ANSWER_TIMEOUT_S = 60.0
RETRY_S = 0.2


class EchoClient(Traffic):
    """Sends to one topic, reads what the echo service puts on another."""

    def __init__(self, settings: Settings) -> None:
        self._there = settings.kafka.topic_prefix + "echo-there"
        self._back = settings.kafka.topic_prefix + "echo-back"
        super().__init__(settings, [self._back])
        self.trips_ms: list[float] = []

    async def __aenter__(self) -> EchoClient:
        async with admin_client(self.settings) as admin:
            factor = self.settings.kafka.replication_factor
            topics = [NewTopic(name, SESSION_PARTITIONS, factor) for name in (self._there, self._back)]
            await admin.create_topics(topics)
        await super().__aenter__()
        await self._first_answer()
        return self

    async def collect(self, due_s: list[float]) -> list[float]:
        """The round trips of messages sent at these times, in milliseconds, from when each was due."""
        self.trips_ms = []
        await self.play(due_s)
        return self.trips_ms

    async def _first_answer(self) -> None:
        """The service may begin to read after the first message was sent: it reads from the beginning."""
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            await self.play([0.0])

    async def _start(self, stack: AsyncExitStack) -> None:
        addresses = bootstrap_servers(self.settings)
        await stack.enter_async_context(
            program(self.settings, MODULE, addresses, self._there, self._back, str(SESSION_PARTITIONS))
        )
        self._producer = AIOKafkaProducer(**producer_options(self.settings))
        await stack.enter_async_context(opened(self._producer, self.settings))

    def _name(self, number: int) -> str:
        return new_id("echo")

    async def _send(self, name: str) -> None:
        key = name.encode()
        await self._producer.send_and_wait(self._there, key=key, value=VALUE, partition=partition_for(key))

    def _see(self, record: Any, now: float) -> None:
        name = record.key.decode()
        if name in self._open:
            self.trips_ms.append((now - self._due_at[name]) * 1_000)
            self._answered(name)
