"""A plain aiokafka echo: what comes on one topic goes out on another, same key, same value.

    python -m benchmarks.baselines.echo BOOTSTRAP FROM TO PARTITIONS

The producer is set up as PML's are: idempotent, acknowledged by all replicas, no linger.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Any

import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

POLL_MS = 500


async def echo(bootstrap: str, source: str, target: str, partitions: int) -> None:
    """Answer everything until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
    )
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", enable_idempotence=True, linger_ms=0)
    async with consumer, producer:
        consumer.assign([TopicPartition(source, number) for number in range(partitions)])
        while not stop.is_set():
            fetched = await consumer.getmany(timeout_ms=POLL_MS)
            for records in fetched.values():
                await _answer(producer, target, records)


async def _answer(producer: Any, target: str, records: list[Any]) -> None:
    """Hand over everything; the producer sends it while the next records are fetched."""
    for record in records:
        await producer.send(target, key=record.key, value=record.value, partition=record.partition)


if __name__ == "__main__":
    bootstrap_servers, from_topic, to_topic, count = sys.argv[1:]
    uvloop.run(echo(bootstrap_servers, from_topic, to_topic, int(count)))
