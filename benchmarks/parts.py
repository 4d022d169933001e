"""What a step is made of, and nothing else: the least that any orchestrator over Kafka and MCP takes.

A step is one record in a log, acknowledged, then a call on one topic, a tool of an MCP server over stdio, and
its answer on another. Nobody decides, claims, checks or stores anything.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import NewTopic

from benchmarks.stack import NOOP, beside_block, program
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.client import new_id
from pml.streams.connection import bootstrap_servers, client_options, partition_for, producer_options
from pml.streams.settings import Settings
from pml.streams.sources import opened
from pml.streams.topics import admin_client

MODULE = "benchmarks.baselines.relay"
# About what an event of a step comes to on the wire.
EVENT = b"x" * 900
POLL_MS = 200
# The relay imports, connects and starts its server in two seconds; a busy machine takes a while.
ANSWER_TIMEOUT_S = 60.0


class Parts:
    """Walks chains of steps, as many at once as are asked for."""

    def __init__(self, producer: Any, consumer: Any, topics: tuple[str, str, str]) -> None:
        self._producer, self._consumer = producer, consumer
        self._log, self._calls, self._outcomes = topics
        self._waiting: dict[bytes, asyncio.Future[None]] = {}

    async def chains(self, count: int, steps: int) -> float:
        """Seconds for so many chains at once, of so many steps each."""
        began = time.perf_counter()
        async with asyncio.TaskGroup() as running:
            for _ in range(count):
                running.create_task(self._chain(steps))
        return time.perf_counter() - began

    async def follow(self) -> None:
        """Read the answers, for ever."""
        while True:
            for records in (await self._consumer.getmany(timeout_ms=POLL_MS)).values():
                for record in records:
                    self._waiting.pop(record.key).set_result(None)

    async def _chain(self, steps: int) -> None:
        key = new_id("parts").encode()
        for number in range(steps):
            await self._send(self._log, key, EVENT)
            answered = self._waiting[key] = asyncio.get_running_loop().create_future()
            await self._send(self._calls, key, orjson.dumps({"number": number}))
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                await answered

    async def _send(self, topic: str, key: bytes, value: bytes) -> None:
        await self._producer.send_and_wait(topic, key=key, value=value, partition=partition_for(key))


@asynccontextmanager
async def parts(settings: Settings) -> AsyncIterator[Parts]:
    """The parts of a step on a running broker, warm, while the block runs."""
    names = ("parts-log", "parts-calls", "parts-outcomes")
    log, calls, outcomes = (settings.kafka.topic_prefix + name for name in names)
    async with admin_client(settings) as admin:
        factor = settings.kafka.replication_factor
        await admin.create_topics(
            [NewTopic(name, SESSION_PARTITIONS, factor) for name in (log, calls, outcomes)]
        )
    relay = (bootstrap_servers(settings), calls, outcomes, str(SESSION_PARTITIONS), str(NOOP))
    producer = AIOKafkaProducer(**producer_options(settings))
    consumer = AIOKafkaConsumer(
        **client_options(settings), enable_auto_commit=False, auto_offset_reset="earliest"
    )
    async with (
        program(settings, MODULE, *relay),
        opened(producer, settings),
        opened(consumer, settings),
    ):
        consumer.assign([TopicPartition(outcomes, number) for number in range(SESSION_PARTITIONS)])
        found = Parts(producer, consumer, (log, calls, outcomes))
        async with beside_block(found.follow()):
            yield found
