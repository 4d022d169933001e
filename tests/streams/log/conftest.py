"""One topic of its own for each test, on the broker of the run."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from pml.streams.log.append import Appender
from pml.streams.log.tail import Tails

LIMITS = {"max.message.bytes": str(16 * 1024 * 1024), "message.timestamp.type": "LogAppendTime"}


@pytest.fixture
def options(kafka: str) -> dict[str, Any]:
    return {"bootstrap_servers": kafka}


@pytest.fixture
def producing(options: dict[str, Any]) -> dict[str, Any]:
    return {**options, "acks": "all", "enable_idempotence": True, "max_request_size": 32 * 1024 * 1024}


@pytest.fixture
async def topic(options: dict[str, Any]) -> str:
    return await made_topic(options, LIMITS)


async def made_topic(options: dict[str, Any], limits: dict[str, str]) -> str:
    """The name of a new topic of two partitions that has these limits from its first record on."""
    name = f"log-{uuid.uuid4().hex[:12]}"
    admin = AIOKafkaAdminClient(**options)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(name, 2, 1, topic_configs=limits)])
    finally:
        await admin.close()
    return name


@pytest.fixture
async def appender(producing: dict[str, Any]) -> AsyncIterator[Appender]:
    appender = Appender(producing)
    await appender.start()
    yield appender
    await appender.stop()


@pytest.fixture
async def tails(options: dict[str, Any]) -> AsyncIterator[Tails]:
    tails = Tails(options, consumers=2, silence_s=10)
    await tails.start()
    yield tails
    await tails.stop()


async def everything(options: dict[str, Any], topic: str, partition: int = 0) -> list[Any]:
    """All records of a partition, by a consumer that has nothing to do with the code under test."""
    pair = TopicPartition(topic, partition)
    async with AIOKafkaConsumer(**options, auto_offset_reset="earliest") as consumer:
        consumer.assign([pair])
        end = (await consumer.end_offsets([pair]))[pair]
        records: list[Any] = []
        while await consumer.position(pair) < end:
            records += (await consumer.getmany(pair, timeout_ms=500)).get(pair, [])
        return records
