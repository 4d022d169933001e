"""What the client library is given, and clients of Kafka that stop by themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pml.streams.connection import broker_errors
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
        with broker_errors(settings):
            await client.start()
        yield client
    finally:
        await client.stop()
