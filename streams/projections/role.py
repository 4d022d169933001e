"""The role `metrics`: a Faust agent folds the log into a table, one value a partition (DESIGN §2, rule 8)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError
from faust.types import TP

from pml.processors.speculation.metrics import SPECULATED, Observation
from pml.schemas.identifiers import split_tool
from pml.streams.app import ChunkApp, chunk_topic, run_app
from pml.streams.connection import client_options, producer_options
from pml.streams.dead_letters import dead_letter
from pml.streams.health import Health
from pml.streams.projections.app import end_role, listen, projection_app, projection_table
from pml.streams.projections.metrics import PartitionMetrics
from pml.streams.projections.table import CHANGELOG, ROLE, TABLE, key_of
from pml.streams.settings import Settings
from pml.streams.sources import opened
from pml.streams.telemetry import (
    ELIGIBLE_CALLS,
    RUN_DURATION,
    RUNS,
    SPECULATION_SAVED,
    SPECULATION_WASTED,
    SPECULATIONS,
    ConsumerLag,
)

# As often as a person looks.
TELL_S = 1.0


class Metrics:
    """Folds every partition it owns; state and guard are one table value, so a repeat changes nothing."""

    name = ROLE

    def __init__(self, settings: Settings, health: Health) -> None:
        self._settings = settings
        self._health = health
        self._topic = settings.topics.events
        self._partitions: dict[int, PartitionMetrics] = {}
        self._owned: set[int] = set()
        self._lag = ConsumerLag(ROLE)

    async def run(self, stop: asyncio.Event) -> None:
        """Fold until `stop` is set.

        Raises:
            LogCorrupted: an event or a stored value of a newer release, or a hole in the log.
        """
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._app = projection_app(ROLE, self._settings, self._positions)
        self._table = projection_table(self._app, TABLE, CHANGELOG)
        self._app.agent(chunk_topic(self._app, self._topic), name="fold", concurrency=1)(self._fold)
        listen(self._app, revoked=self._on_revoked, assigned=self._on_assigned, restored=self._on_restored)
        producer = AIOKafkaProducer(**producer_options(self._settings))
        consumer = AIOKafkaConsumer(**client_options(self._settings))
        async with (
            opened(producer, self._settings) as self._producer,
            opened(consumer, self._settings) as ends,
        ):
            telling = asyncio.create_task(self._tell_often(ends))
            try:
                await run_app(self._app, stop, self._failure, telling)
            finally:
                telling.cancel()

    async def _on_revoked(self, app: ChunkApp, revoked: set[TP], **options: Any) -> None:
        self._partitions.clear()

    async def _on_assigned(self, app: ChunkApp, assigned: set[TP], **options: Any) -> None:
        """What this process had written of a partition that is lost would be stale when it comes back."""
        self._partitions.clear()
        owned = {pair.partition for pair in assigned if pair.topic == self._topic}
        for partition in self._owned - owned:
            self._table.data.data.pop(key_of(partition), None)
        self._owned = owned
        self._lag.keep([(self._topic, partition) for partition in owned])

    async def _on_restored(self, app: ChunkApp, **options: Any) -> None:
        self._health.ready(partitions=len(self._owned))

    def _positions(self, assigned: Iterable[TP]) -> Mapping[TP, int]:
        """Begin after the guard, whatever the group committed."""
        mine = [pair for pair in assigned if pair.topic == self._topic]
        return {pair: self._stored(pair.partition).offset + 1 for pair in mine}

    async def _fold(self, stream: Any) -> None:
        async for event in stream.events():
            try:
                await self._fold_chunk(event.message.partition, event.value)
            except Exception as error:
                await end_role(ROLE, self._failure, error)

    async def _fold_chunk(self, partition: int, records: list[Any]) -> None:
        metrics = self._partitions.get(partition)
        if metrics is None:
            metrics = self._partitions[partition] = self._stored(partition)
        folded = metrics.fold(records)
        for record, error in folded.broken:
            await dead_letter(self._producer, self._settings.topics, record, "project", error)
        if self._partitions.get(partition) is not metrics:
            # A rebalance came in between: whoever owns the partition now reads this chunk, and may have.
            return
        self._table[key_of(partition)] = metrics.encode()
        for seen in folded.seen:
            count(seen)

    def _stored(self, partition: int) -> PartitionMetrics:
        return PartitionMetrics.decode(self._table.data.data.get(key_of(partition)))

    async def _tell_often(self, consumer: Any) -> None:
        """Asks the broker itself: Faust's consumer does not look while it recovers, or hangs."""
        while True:
            await asyncio.sleep(TELL_S)
            pairs = [TopicPartition(self._topic, partition) for partition in self._owned]
            with suppress(KafkaError):
                ends = await consumer.end_offsets(pairs) if pairs else {}
                # One that was lost meanwhile is not ours to tell of.
                self._tell({p.partition: end for p, end in ends.items() if p.partition in self._owned})

    def _tell(self, ends: Mapping[int, int]) -> None:
        folded = {partition: self._folded(partition) for partition in ends}
        lags = {partition: max(0, end - 1 - folded[partition]) for partition, end in ends.items()}
        self._lag.tell({(self._topic, partition): records for partition, records in lags.items()})
        self._health.progress(lag=sum(lags.values()), position=sum(folded.values()) + len(folded))

    def _folded(self, partition: int) -> int:
        metrics = self._partitions.get(partition)
        return self._stored(partition).offset if metrics is None else metrics.offset


def count(seen: Observation) -> None:
    """Add what was folded to this process's Prometheus metrics."""
    if seen.early:
        speculated = "true" if seen.early == SPECULATED else "false"
        ELIGIBLE_CALLS.labels(*split_tool(seen.subject), speculated).inc()
    if seen.account == "run":
        RUNS.labels(seen.subject).inc()
        RUN_DURATION.observe(seen.duration_ms / 1000)
    elif seen.account == "ended":
        SPECULATIONS.labels(*split_tool(seen.subject), seen.fate, seen.reason).inc()
        if seen.fate == "served":
            SPECULATION_SAVED.inc(seen.saved_ms / 1000)
        else:
            SPECULATION_WASTED.inc(seen.tool_ms / 1000)
