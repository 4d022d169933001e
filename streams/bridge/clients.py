"""The Kafka clients of a bridge, started together and closed in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaConsumer

from pml.streams.bridge.letters import DeadLetters
from pml.streams.connection import client_options, producer_options
from pml.streams.log.append import Appender
from pml.streams.log.tail import Tails
from pml.streams.long_polls import poll_long_when_idle
from pml.streams.reachability import broker_errors
from pml.streams.settings import Settings


@dataclass(frozen=True, slots=True)
class Clients:
    """Claims have a producer of their own: an error of another one must not delay them."""

    claims: Appender
    outcomes: Appender
    tails: Tails
    letters: DeadLetters
    consumer: Any


@asynccontextmanager
async def clients(settings: Settings) -> AsyncIterator[Clients]:
    """Connect everything; the consumer is not subscribed yet.

    Raises:
        BrokerUnavailable: no broker answers.
    """
    options = producer_options(settings)
    claims, outcomes = Appender(options), Appender(options)
    tails = Tails(client_options(settings))
    letters = DeadLetters(settings.topics, options)
    consumer = _consumer(settings)
    async with AsyncExitStack() as stack:
        for stop in (letters.close, claims.stop, outcomes.stop, tails.stop):
            stack.push_async_callback(stop)
        stack.push_async_callback(_stop, consumer)
        async with broker_errors(settings):
            for client in (claims, outcomes, tails, consumer):
                await client.start()
        poll_long_when_idle(consumer)
        yield Clients(claims, outcomes, tails, letters, consumer)


async def _stop(consumer: Any) -> None:
    """Also where a fetch waits after an error: its cancellation comes out of aiokafka's own `stop`."""
    await asyncio.gather(consumer.stop(), return_exceptions=True)
    await consumer._client.close()


def _consumer(settings: Settings) -> Any:
    """The consumer of the calls' group; offsets are committed by the watermark alone."""
    kafka = settings.kafka
    return AIOKafkaConsumer(
        **client_options(settings),
        group_id=settings.group("bridge"),
        group_instance_id=f"{kafka.group_instance_id}-bridge" if kafka.group_instance_id else None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=int(kafka.session_timeout_s * 1000),
        heartbeat_interval_ms=int(kafka.heartbeat_s * 1000),
        # A partition left out of a long poll waits for its end (FAUST.md, section 1).
        fetch_max_wait_ms=100,
    )
