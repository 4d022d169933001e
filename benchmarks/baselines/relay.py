"""A plain tool bridge: what comes on one topic is a call of an MCP server, its answer goes out on another.

    python -m benchmarks.baselines.relay BOOTSTRAP FROM TO PARTITIONS SERVER

Nothing is claimed, checked, limited or kept. The producer is set up as PML's are.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Any

import orjson
import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from mcp import Client
from mcp.client.stdio import StdioServerParameters

POLL_MS = 500


async def relay(bootstrap: str, source: str, target: str, partitions: int, server: str) -> None:
    """Call the tool `read` for everything that comes, until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
    )
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", enable_idempotence=True, linger_ms=0)
    stdio = StdioServerParameters(command=sys.executable, args=[server])
    async with consumer, producer, Client(stdio, cache=None) as client, asyncio.TaskGroup() as calls:
        consumer.assign([TopicPartition(source, number) for number in range(partitions)])
        while not stop.is_set():
            for records in (await consumer.getmany(timeout_ms=POLL_MS)).values():
                for record in records:
                    calls.create_task(_call(client, producer, target, record))


async def _call(client: Client, producer: Any, target: str, record: Any) -> None:
    answer = await client.call_tool("read", orjson.loads(record.value))
    value = orjson.dumps(answer.structured_content)
    await producer.send(target, key=record.key, value=value, partition=record.partition)


if __name__ == "__main__":
    bootstrap_servers, from_topic, to_topic, count, path = sys.argv[1:]
    uvloop.run(relay(bootstrap_servers, from_topic, to_topic, int(count), path))
