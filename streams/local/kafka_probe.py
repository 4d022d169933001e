"""Whether a broker on this machine answers."""

from __future__ import annotations

import asyncio

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError

ANSWER_TIMEOUT_MS = 2_000  # one question to a broker on this machine; whoever waits asks again


async def answers(host: str, port: int) -> bool:
    """Whether a broker listens there and serves: it names itself only once its controller lets it."""
    return await _listens(host, port) and await _serves(f"{host}:{port}")


async def _listens(host: str, port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError:
        return False
    writer.close()
    return True


async def _serves(bootstrap_servers: str) -> bool:
    client = AIOKafkaClient(bootstrap_servers=bootstrap_servers, request_timeout_ms=ANSWER_TIMEOUT_MS)
    try:
        await client.bootstrap()
        return bool(client.cluster.brokers())
    except KafkaError:
        return False
    finally:
        await client.close()
