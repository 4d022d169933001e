"""The role `thresholds`: two Faust agents, from the log to lessons and from lessons to the catalog.

A context cuts across the partitions of the log, and its windows need one order. So the owner of a partition
of the log only addresses lessons, and the owner of a partition of `pml.lessons` learns from them (ADR 12).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import structlog
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from faust.types import TP

from pml.processors.speculation.adaptation import Learning
from pml.processors.speculation.thresholds import scope_of
from pml.schemas.catalog import CatalogData, CatalogRecord, ModelLive, ThresholdRecord
from pml.schemas.codec import encode
from pml.schemas.errors import PMLError
from pml.schemas.identifiers import DEFAULT_TENANT
from pml.streams.app import ChunkApp, chunk_topic, run_app
from pml.streams.connection import client_options, partition_for, producer_options
from pml.streams.crash_points import crash_point
from pml.streams.dead_letters import Received, dead_letter
from pml.streams.health import Health
from pml.streams.learning.rollback import roll_back_fallen
from pml.streams.projections.app import end_role, listen, projection_app, projection_table
from pml.streams.projections.thresholds.learning import Learned, PartitionLearning
from pml.streams.projections.thresholds.table import (
    CHANGELOG,
    ROLE,
    TABLE,
    decode_row,
    encode_row,
    key_of,
    position_key,
    subject_of,
)
from pml.streams.projections.thresholds.teaching import teach
from pml.streams.settings import Settings
from pml.streams.sources import opened
from pml.streams.telemetry import (
    MODEL_HIT_RATE,
    MODEL_ROLLBACKS,
    SPECULATION_THRESHOLD,
    ConsumerLag,
)
from pml.streams.topics import admin_client

# As often as a person looks.
TELL_S = 1.0

log = structlog.get_logger("pml.thresholds")


class Thresholds:
    """Teaches for the log partitions that it owns, learns for the same partitions of the lessons."""

    name = ROLE

    def __init__(self, settings: Settings, health: Health) -> None:
        self._settings = settings
        self._health = health
        self._topics = settings.topics
        self._partitions: dict[int, PartitionLearning] = {}
        self._owned: set[int] = set()
        self._lag = ConsumerLag(ROLE)

    async def run(self, stop: asyncio.Event) -> None:
        """Teach and learn until `stop` is set.

        Raises:
            LogCorrupted: an event, a lesson or a stored row of a newer release.
        """
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._app = self._make_app()
        producer = AIOKafkaProducer(**producer_options(self._settings))
        consumer = AIOKafkaConsumer(**client_options(self._settings))
        async with (
            opened(producer, self._settings) as self._producer,
            opened(consumer, self._settings) as ends,
            admin_client(self._settings) as admin,
        ):
            telling = asyncio.create_task(self._tell_often(ends, admin))
            try:
                await run_app(self._app, stop, self._failure, telling)
            finally:
                telling.cancel()

    def _make_app(self) -> ChunkApp:
        app = projection_app(ROLE, self._settings, self._positions)
        self._table = projection_table(app, TABLE, CHANGELOG)
        app.agent(chunk_topic(app, self._topics.events), name="teach", concurrency=1)(self._teach)
        app.agent(chunk_topic(app, self._topics.lessons), name="learn", concurrency=1)(self._learn)
        listen(app, revoked=self._on_revoked, assigned=self._on_assigned, restored=self._on_restored)
        return app

    async def _on_revoked(self, app: ChunkApp, revoked: set[TP], **options: Any) -> None:
        self._partitions.clear()

    async def _on_assigned(self, app: ChunkApp, assigned: set[TP], **options: Any) -> None:
        """Rows of a partition that is lost would be stale when it comes back."""
        self._partitions.clear()
        owned = {pair.partition for pair in assigned if pair.topic == self._topics.lessons}
        rows = self._table.data.data
        for key in [key for key in rows if subject_of(key)[0] not in owned]:
            del rows[key]
        self._owned = owned
        topics = (self._topics.events, self._topics.lessons)
        self._lag.keep([(topic, partition) for topic in topics for partition in owned])

    async def _on_restored(self, app: ChunkApp, **options: Any) -> None:
        self._health.ready(partitions=len(self._owned))

    def _positions(self, assigned: Iterable[TP]) -> Mapping[TP, int]:
        """Lessons begin behind what is in the rows; the log where the group committed: repeats are known."""
        return {
            pair: self._position(pair.partition) + 1
            for pair in assigned
            if pair.topic == self._topics.lessons
        }

    def _position(self, partition: int) -> int:
        return int(self._table.data.data.get(position_key(partition), b"-1"))

    async def _teach(self, stream: Any) -> None:
        async for event in stream.events():
            try:
                await self._teach_chunk(event.value)
            except Exception as error:
                await end_role(ROLE, self._failure, error)

    async def _learn(self, stream: Any) -> None:
        async for event in stream.events():
            try:
                await self._learn_chunk(event.message.partition, event.value)
            except Exception as error:
                await end_role(ROLE, self._failure, error)

    async def _teach_chunk(self, records: list[Any]) -> None:
        """Acknowledged lessons, then the chunk; a crash between them sends the same lessons again."""
        taught = teach(records)
        await self._bury(taught.broken)
        topic = self._topics.lessons
        sent = [
            await self._producer.send(
                topic, value=encode(lesson), key=lesson.key, partition=partition_for(lesson.key)
            )
            for lesson in taught.lessons
        ]
        await asyncio.gather(*sent)
        crash_point("thresholds.after_lessons")

    async def _learn_chunk(self, partition: int, records: list[Any]) -> None:
        """Acknowledged catalog records, then rows; a crash between them publishes the same records again."""
        learning = self._partitions.get(partition)
        if learning is None:
            learning = self._partitions[partition] = self._restored(partition)
        learned = learning.fold(records)
        await self._bury(learned.broken)
        await asyncio.gather(*[await self._publish(subject, data) for subject, data in learned.records])
        await self._judge(learned)
        crash_point("thresholds.after_records")
        if self._partitions.get(partition) is not learning:
            # A rebalance came in between: whoever owns the partition now reads this chunk, and may have.
            return
        self._write(partition, learned)
        learning.keep(learned)

    async def _judge(self, learned: Learned) -> None:
        """Models that were counted often enough; to be asked again after a crash changes nothing more."""
        for subject, data in learned.records:
            if isinstance(data, ModelLive):
                tenant = subject.partition("/")[2]
                record = await roll_back_fallen(self._settings, tenant, data)
                if record is not None:
                    MODEL_ROLLBACKS.inc()

    def _write(self, partition: int, learned: Learned) -> None:
        """The position last: where it is kept, all rows before it are."""
        for subject, row in learned.rows.items():
            key = key_of(partition, subject)
            if row is not None:
                self._table[key] = encode_row(row)
            elif key in self._table:
                del self._table[key]
        self._table[position_key(partition)] = b"%d" % learned.position

    def _restored(self, partition: int) -> PartitionLearning:
        rows = {subject_of(key): value for key, value in self._table.data.data.items()}
        found = {
            subject: decode_row(value)
            for (number, subject), value in rows.items()
            if number == partition and subject is not None
        }
        for subject, row in found.items():
            if isinstance(row.learned, Learning) and row.learned.windows:
                show(subject, row.learned.value)
        return PartitionLearning(found, self._position(partition))

    async def _publish(self, subject: str, data: CatalogData | None) -> asyncio.Future[Any]:
        """Sent in this order; whoever awaits what comes back knows that it was acknowledged."""
        value = None
        if data is not None:
            kind, _, name = subject.partition("/")
            value = encode(CatalogRecord(kind=kind, id=name, version=data.VERSION, data=data))
        sent: asyncio.Future[Any] = await self._producer.send(
            self._topics.catalog, value=value, key=subject.encode()
        )
        if isinstance(data, ThresholdRecord):
            log.info("threshold", subject=subject, value=data.value, ema=data.ema, state=data.state)
            show(subject, data.value)
        elif isinstance(data, ModelLive):
            log.info("model counted", subject=subject, **data.model_dump(exclude={"since", "at"}))
            show_live(subject, data)
        return sent

    async def _bury(self, broken: Iterable[tuple[Received, PMLError]]) -> None:
        for record, error in broken:
            await dead_letter(self._producer, self._topics, record, "project", error)

    async def _tell_often(self, consumer: Any, admin: AIOKafkaAdminClient) -> None:
        """Asks the broker itself: Faust's consumer does not look while it recovers, or hangs."""
        while True:
            await asyncio.sleep(TELL_S)
            pairs = [
                TopicPartition(topic, partition)
                for topic in (self._topics.events, self._topics.lessons)
                for partition in self._owned
            ]
            with suppress(KafkaError):
                name = self._app.conf.id
                group = await admin.list_consumer_group_offsets(name, partitions=pairs) if pairs else {}
                ends = await consumer.end_offsets(pairs) if pairs else {}
                # One that was lost meanwhile is not ours to tell of.
                owned = {pair: end for pair, end in ends.items() if pair.partition in self._owned}
                self._tell({pair: max(0, group[pair].offset) for pair in owned if pair in group}, owned)

    def _tell(self, places: Mapping[Any, int], ends: Mapping[Any, int]) -> None:
        lags = {pair: max(0, end - places.get(pair, 0)) for pair, end in ends.items()}
        self._lag.tell({(pair.topic, pair.partition): records for pair, records in lags.items()})
        self._health.progress(lag=sum(lags.values()), position=sum(places.values()))


def show(subject: str, value: float) -> None:
    """Tell Prometheus, which knows no tenants, what holds for the default one: by type, and for all."""
    scope = scope_of(subject.partition("/")[2])
    if scope["tenant"] == DEFAULT_TENANT and scope["level"] in ("type", "default"):
        SPECULATION_THRESHOLD.labels(scope["level"], scope["workflow_type"] or "").set(value)


def show_live(subject: str, live: ModelLive) -> None:
    """Tell Prometheus, which knows no tenants, how often the default one's model is right."""
    if subject.partition("/")[2] == DEFAULT_TENANT:
        for figure, value in (("live", live.hit_1), ("low", live.low), ("high", live.high)):
            MODEL_HIT_RATE.labels(figure).set(value)
