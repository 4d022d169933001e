"""An hour of a busy installation's changelog, written in a minute: what a take-over must replay.

A hundred busy sessions are written behind twice a second: 720,000 records an hour. The control records that
the table holds are written again and again with the times of the hour that comes, so that the broker rolls
and compacts its segments as it would have: it takes times up to an hour ahead, and rolls for later ones only.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.connection import client_options, producer_options
from pml.streams.settings import Settings
from pml.streams.sources import opened

RECORDS = 720_000
# Nearly an hour: the broker's clock is not ours.
HOUR_MS = 3_500_000
POLL_MS = 500
# Half a megabyte a request.
BATCH_RECORDS = 500
# The broker's cleaner looks every 15 s; what is left after some of its rounds is what stays.
COMPACTED_SHARE = 0.2
LOOK_S = 10.0
COMPACTION_TIMEOUT_S = 120.0
# States are written behind twice a second; a busy machine is later.
WRITTEN_TIMEOUT_S = 60.0

Records = Mapping[int, Mapping[bytes, bytes]]


async def write_an_hour(settings: Settings, topic: str, sessions: int) -> int:
    """Write it, and wait until the broker has compacted most of it; how many records are left.

    Args:
        sessions: how many the table holds; they are waited for.

    Raises:
        TimeoutError: it did not come to hold them.
    """
    async with asyncio.timeout(WRITTEN_TIMEOUT_S):
        while sum(map(len, (controls := await _controls(settings, topic)).values())) < sessions:
            await asyncio.sleep(1)
    await _write(settings, topic, controls)
    give_up = time.monotonic() + COMPACTION_TIMEOUT_S
    _, left = await _read(settings, topic)
    while left > COMPACTED_SHARE * RECORDS and time.monotonic() < give_up:
        await asyncio.sleep(LOOK_S)
        _, left = await _read(settings, topic)
    return left


async def _controls(settings: Settings, topic: str) -> Records:
    """The newest control record of each session."""
    newest, _ = await _read(settings, topic)
    return {
        number: {key: value for key, value in found.items() if b"/session/" in key[:14]}
        for number, found in newest.items()
    }


async def _read(settings: Settings, topic: str) -> tuple[Records, int]:
    """The newest record of each key by partition, and how many records there are in all."""
    newest: dict[int, dict[bytes, bytes]] = defaultdict(dict)
    count = 0
    consumer = AIOKafkaConsumer(
        **client_options(settings), enable_auto_commit=False, auto_offset_reset="earliest"
    )
    async with opened(consumer, settings):
        pairs = [TopicPartition(topic, number) for number in range(SESSION_PARTITIONS)]
        consumer.assign(pairs)
        ends = await consumer.end_offsets(pairs)
        while any([await consumer.position(pair) < ends[pair] for pair in pairs]):
            for pair, records in (await consumer.getmany(timeout_ms=POLL_MS)).items():
                count += len(records)
                newest[pair.partition].update({record.key: record.value for record in records})
    return newest, count


async def _write(settings: Settings, topic: str, controls: Records) -> None:
    """Every record in turn, over and over; the times pass evenly through the hour."""
    total = sum(map(len, controls.values()))
    repeats = RECORDS // total
    began_ms = time.time_ns() // 1_000_000
    producer = AIOKafkaProducer(**producer_options(settings) | {"max_batch_size": 1 << 20})
    async with opened(producer, settings):
        await asyncio.gather(
            *(
                _write_one(producer, TopicPartition(topic, number), list(found.items()), repeats, began_ms)
                for number, found in controls.items()
                if found
            )
        )


async def _write_one(
    producer: AIOKafkaProducer,
    pair: TopicPartition,
    records: Sequence[tuple[bytes, bytes]],
    repeats: int,
    began_ms: int,
) -> None:
    total = repeats * len(records)
    for first in range(0, total, BATCH_RECORDS):
        batch = producer.create_batch()
        for number in range(first, min(first + BATCH_RECORDS, total)):
            key, value = records[number % len(records)]
            if batch.append(key=key, value=value, timestamp=began_ms + HOUR_MS * number // total) is None:
                raise ValueError("a batch of control records does not fit into a request")
        await (await producer.send_batch(batch, pair.topic, partition=pair.partition))
