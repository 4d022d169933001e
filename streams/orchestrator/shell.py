"""What the parts of the orchestrator share: clients, caches and settings of one process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog

from pml.processors.workflow import Catalog
from pml.schemas.errors import BrokerUnavailable, PMLError
from pml.schemas.topics import Topics
from pml.streams.clock import Clock, now_ms
from pml.streams.dead_letters import dead_letter
from pml.streams.log.append import Appender, InDoubt, Outgoing, cut
from pml.streams.log.tail import Tails
from pml.streams.orchestrator.catalog import CatalogFollower
from pml.streams.orchestrator.payloads import PayloadCache
from pml.streams.settings import Settings

# Repeats of what must be sent: a broker killed and back takes 5 s, an acknowledgement at most 8 s.
SEND_ATTEMPTS = 5
SEND_PAUSE_S = 0.5

log = structlog.get_logger("pml.orchestrator")


@dataclass(frozen=True, slots=True)
class Shell:
    """Clients and caches. `log` appends to the log and the changelog, `outbox` everything else."""

    settings: Settings
    topics: Topics
    owner: str
    hash_key: bytes
    log: Appender
    outbox: Appender
    tails: Tails
    payloads: PayloadCache
    catalog: CatalogFollower
    now_ms: Clock = now_ms

    def snapshot(self) -> Catalog:
        """The catalog for one chunk."""
        return self.catalog.snapshot()

    async def send(self, topic: str, partition: int, records: Iterable[Outgoing]) -> None:
        """Send the records in order, in batches, each again until it is acknowledged.

        A batch that was in doubt may lie there twice: who reads calls, commands and outcomes knows them by
        their ids.

        Raises:
            InDoubt, BrokerUnavailable: not acknowledged after five attempts.
        """
        for batch in cut(records):
            await insist(partial(self.outbox.send, topic, partition, batch))

    async def bury(self, record: Any, stage: str, error: PMLError) -> None:
        """Put a record to the dead letters, acknowledged.

        Raises:
            InDoubt, BrokerUnavailable: not acknowledged after five attempts.
        """
        log.warning(
            "dead letter",
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            stage=stage,
            code=error.code,
            reason=error.message,
        )
        await insist(partial(self._bury, record, stage, error))

    async def _bury(self, record: Any, stage: str, error: PMLError) -> None:
        async with self.outbox.producer() as producer:
            await dead_letter(producer, self.topics, record, stage, error)


async def insist(attempt: Callable[[], Awaitable[Any]]) -> None:
    """Repeat what may be repeated until it succeeds, five times at most."""
    for number in range(1, SEND_ATTEMPTS + 1):
        try:
            await attempt()
            return
        except (InDoubt, BrokerUnavailable):
            if number == SEND_ATTEMPTS:
                raise
            await asyncio.sleep(SEND_PAUSE_S * number)
