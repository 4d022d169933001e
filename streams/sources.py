"""What the client library is given, and clients of Kafka that stop by themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pml.schemas.errors import TopicMismatch
from pml.streams.reachability import broker_errors
from pml.streams.settings import Settings


def settings_of(source: Settings | str) -> Settings:
    """The settings that a caller gave, or the default ones with this broker."""
    return source if isinstance(source, Settings) else Settings.load(kafka={"bootstrap_servers": source})


@asynccontextmanager
async def opened(client: Any, settings: Settings) -> AsyncIterator[Any]:
    """An aiokafka client while it runs.

    Raises:
        BrokerUnavailable: the broker does not answer when the client starts.
    """
    try:
        async with broker_errors(settings):
            await client.start()
        yield client
    finally:
        await client.stop()


async def require_topic(consumer: Any, topic: str) -> None:
    """Refuse to wait for a topic that is not there: a reader of it would wait for ever.

    Raises:
        TopicMismatch: the broker answers and does not have it.
    """
    if topic not in await consumer.topics():
        raise missing_topic(topic)


def missing_topic(topic: str) -> TopicMismatch:
    """The error of a broker without PML's topics."""
    return TopicMismatch(
        f"the broker has no topic {topic}: `pml up` or a worker makes it; is kafka.topic_prefix right?"
    )
