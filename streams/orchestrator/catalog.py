"""`pml.catalog` as the core decides with it: read to its end, then followed; one snapshot a chunk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from pml.processors.workflow import Catalog
from pml.schemas.codec import decode_catalog
from pml.schemas.errors import BrokerUnavailable, PMLError, UndecodableRecord, UnknownMessage

# The switch must hold everywhere within two seconds, so a role that hears nothing for two does not speculate.
CONTACT_S = 2.0
POLL_MS = 250
REQUEST_TIMEOUT_S = 1.5
# A broker that was killed is back within 5 s; one that is silent for this long is away.
SILENCE_S = 30.0
# Between two questions; where more time has gone by, it is this process that was paused.
ASKED_AGAIN_S = 2 * REQUEST_TIMEOUT_S

log = structlog.get_logger("pml.orchestrator.catalog")


class CatalogFollower:
    """The newest snapshot of the catalog.

    Args:
        options: keyword arguments of a consumer.
        report: awaited with a record that cannot be read and why.
    """

    def __init__(
        self,
        options: dict[str, Any],
        topic: str,
        empty: Catalog,
        report: Any,
        *,
        new_consumer: Callable[..., Any] = AIOKafkaConsumer,
    ) -> None:
        self._options = options
        self._pair = TopicPartition(topic, 0)
        self._catalog = empty
        self._report = report
        self._new_consumer = new_consumer
        self._consumer: Any = None
        self._heard_at = self._asked_at = float("-inf")
        self._silent_s = 0.0
        self._moved = asyncio.Condition()
        self._taking = False

    async def start(self) -> None:
        """Connect; `follow` reads."""
        self._consumer = self._new_consumer(
            **self._options, enable_auto_commit=False, fetch_max_wait_ms=POLL_MS, auto_offset_reset="earliest"
        )
        await self._consumer.start()
        self._consumer.assign([self._pair])
        await self._consumer.seek_to_beginning(self._pair)
        self._heard()

    async def stop(self) -> None:
        """Close the consumer."""
        if self._consumer is not None:
            await self._consumer.stop()

    def snapshot(self) -> Catalog:
        """What is known now; without speculation where the broker was not heard of for two seconds."""
        if _now_s() - self._heard_at > CONTACT_S:
            return replace(self._catalog, switches={**self._catalog.switches, "contact": "off"})
        return self._catalog

    async def moved(self) -> None:
        """Wait until the topic was looked at once more."""
        async with self._moved:
            await self._moved.wait()

    async def follow(self) -> None:
        """Take in records for ever.

        Raises:
            BrokerUnavailable: the broker is silent for too long.
        """
        while True:
            found = (await self._consumer.getmany(self._pair, timeout_ms=POLL_MS)).get(self._pair, [])
            self._taking = True
            for record in found:
                await self._take(record)
            self._taking = False
            if found:
                self._heard()
            elif _now_s() - self._heard_at > CONTACT_S / 4:
                await self._listen()
            async with self._moved:
                self._moved.notify_all()

    async def catch_up(self) -> None:
        """Wait until everything that the topic holds now is in the snapshot.

        Raises:
            BrokerUnavailable: the broker does not answer, or says nothing for too long.
        """
        try:
            end = (await self._consumer.end_offsets([self._pair]))[self._pair]
            async with asyncio.timeout(SILENCE_S), self._moved:
                # The consumer's position is behind what it gave, which may not be taken in yet.
                while await self._consumer.position(self._pair) < end or self._taking:
                    await self._moved.wait()
        except (KafkaError, TimeoutError) as error:
            raise BrokerUnavailable(f"the catalog cannot be read to its end: {error!r}") from error

    async def _listen(self) -> None:
        with suppress(KafkaError, TimeoutError):
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                await self._consumer.end_offsets([self._pair])
            self._heard()
            return
        now_s = _now_s()
        self._silent_s += min(now_s - self._asked_at, ASKED_AGAIN_S)
        self._asked_at = now_s
        if self._silent_s > SILENCE_S:
            raise BrokerUnavailable(f"the broker of the catalog is silent for {self._silent_s:.0f} s")

    def _heard(self) -> None:
        self._heard_at = self._asked_at = _now_s()
        self._silent_s = 0.0

    async def _take(self, record: Any) -> None:
        kind, _, name = (record.key or b"").decode(errors="replace").partition("/")
        if record.value is None:
            self._catalog = self._catalog.without(kind, name)
            return
        try:
            self._catalog = self._catalog.with_record(decode_catalog(record.value))
        except (UndecodableRecord, UnknownMessage) as error:
            await self._passed_over(record, error)

    async def _passed_over(self, record: Any, error: PMLError) -> None:
        log.warning("catalog record passed over", offset=record.offset, code=error.code, reason=error.message)
        await self._report(record, error)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
