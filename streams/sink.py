"""The sink: batches of events go to ClickHouse, each once, whatever crashes (DESIGN §2, rule 8).

For each batch of a partition: (1) commit its planned end as metadata of the group offset, (2) insert it with
the token `partition-first-end`, (3) commit the end. A crash between them repeats exactly that range, and the
store knows the token. Nothing waits for the sink: while the store is away it stops reading and tries again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any

import structlog
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import CommitFailedError, IllegalStateError, KafkaError
from aiokafka.structs import OffsetAndMetadata

from pml.schemas.errors import StoreUnavailable, UndecodableRecord
from pml.streams.connection import client_options, producer_options
from pml.streams.crash_points import crash_point
from pml.streams.dead_letters import dead_letter
from pml.streams.health import Health
from pml.streams.log.reader import counted
from pml.streams.settings import Settings
from pml.streams.sink_assignment import Assignment
from pml.streams.sink_buffer import Batch, Buffer, Limits, plan_metadata, planned_end
from pml.streams.sink_rows import Row, row_of
from pml.streams.sink_store import SinkStore
from pml.streams.sink_thresholds import ThresholdHistory
from pml.streams.sources import opened
from pml.streams.telemetry import ConsumerLag
from pml.streams.topics import admin_client

# Two keep the store busy while the next batch is being decoded; more only make smaller batches.
INSERTS_AT_ONCE = 2
# As often as a person looks.
TELL_S = 1.0
# Only bounds how late a batch is looked at, and a stop noticed.
POLL_MS = 100
# A batch waits for at least as long anyway; polling for each event would cost more than inserting it.
FETCH_MIN_BYTES = 64 * 1024
FETCH_WAIT_MS = 200
# Longer, and a person who asks about a run that has just ended is told too little.
WAIT_MAX_S = 3.0
# How much the newest insert says about the next one.
INSERT_WEIGHT = 0.2
# A store that starts again is asked soon; one that is away for hours, twelve times a minute.
RETRY_FIRST_S, RETRY_MAX_S = 0.1, 5.0
# A group that rebalances takes its partitions back within a heartbeat or two.
REBALANCE_PAUSE_S = 0.5
# An insert that runs ends in well under a second; what does not is repeated after the next start.
FINISH_TIMEOUT_S = 5.0

log = structlog.get_logger("pml.sink")


class Sink(ConsumerRebalanceListener):
    """The role `sink`: one consumer of the log, a buffer for each partition, at most two inserts at once."""

    name = "sink"

    def __init__(self, settings: Settings, health: Health) -> None:
        self._settings = settings
        self._health = health
        self._topic = settings.topics.events
        sink = settings.sink
        self._limits = Limits(sink.batch_rows, sink.batch_bytes)
        self._store = SinkStore(settings)
        self._assignment: Assignment | None = None
        self._slots = asyncio.Semaphore(INSERTS_AT_ONCE)
        self._blocked = False
        self._insert_s = 0.0
        self._lag = ConsumerLag(self.name)

    async def run(self, stop: asyncio.Event) -> None:
        """Sink until `stop` is set.

        Raises:
            LogCorrupted: an event of a newer release; upgrade, nothing is lost.
            ConfigurationError: the store has no tables; `pml migrate` makes them.
            QueryError: the store refuses the rows.
        """
        async with AsyncExitStack() as stack:
            producer = AIOKafkaProducer(**producer_options(self._settings))
            self._producer = await stack.enter_async_context(opened(producer, self._settings))
            self._admin = await stack.enter_async_context(admin_client(self._settings))
            self._consumer = self._new_consumer()
            self._consumer.subscribe([self._topic], listener=self)
            await stack.enter_async_context(opened(self._consumer, self._settings))
            stack.push_async_callback(self._finish)
            self._telling = asyncio.create_task(self._tell_often())
            stack.callback(self._telling.cancel)
            self._health.ready()
            while not stop.is_set():
                await self._turn()

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Partitions of this process; their buffers are opened by the next turn, where an error is heard."""
        self._assignment = Assignment(frozenset(pair.partition for pair in assigned))

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Let go, at once: a turn that runs meanwhile must not take what is being cancelled for its own."""
        if self._assignment is not None:
            await self._let_go(self._assignment)
            self._unblock()

    async def _let_go(self, assignment: Assignment) -> None:
        self._assignment = None
        self._lag.keep(())
        await assignment.cancel()

    def _new_consumer(self) -> Any:
        kafka = self._settings.kafka
        return AIOKafkaConsumer(
            **client_options(self._settings),
            group_id=self._settings.group(self.name),
            group_instance_id=kafka.group_instance_id,
            session_timeout_ms=round(kafka.session_timeout_s * 1000),
            heartbeat_interval_ms=round(kafka.heartbeat_s * 1000),
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_min_bytes=FETCH_MIN_BYTES,
            fetch_max_wait_ms=FETCH_WAIT_MS,
        )

    async def _turn(self) -> None:
        assignment = self._assignment
        if assignment is not None:
            await self._open(assignment)
        fetched = await self._consumer.getmany(timeout_ms=POLL_MS, max_records=self._limits.rows)
        if assignment is not None and assignment is self._assignment:
            self._work(assignment, fetched)
        if self._telling.done():
            self._telling.result()

    def _work(self, assignment: Assignment, fetched: Mapping[TopicPartition, Sequence[Any]]) -> None:
        now_s = time.monotonic()
        for pair, records in fetched.items():
            if pair.partition in assignment.buffers:
                assignment.buffers[pair.partition].take(records, now_s)
        assignment.collect()
        wait_s = self._wait_s(len(assignment.buffers))
        for partition, buffer in assignment.buffers.items():
            if partition not in assignment.flushes and buffer.due(now_s, wait_s):
                assignment.flushes[partition] = asyncio.create_task(self._flush(buffer))
        self._pause(assignment)
        # One sink of all keeps the history of thresholds: the one that owns partition 0.
        if assignment.history is None and 0 in assignment.buffers:
            history = ThresholdHistory(self._settings, self._store)
            assignment.history = asyncio.create_task(history.run(), name="thresholds")

    def _wait_s(self, partitions: int) -> float:
        """How long a small batch waits: a short time, or what keeps the store idle half of the time.

        An insert of five rows costs nearly as much as one of five hundred, so many partitions with a few
        events each would keep it busy for nothing.
        """
        paced_s = 2 * partitions * self._insert_s
        return max(self._settings.sink.batch_wait_ms / 1000, min(paced_s, WAIT_MAX_S))

    async def _open(self, assignment: Assignment) -> None:
        """Begin each partition where the group stands, with the plan that a crash left there."""
        pairs = [TopicPartition(self._topic, partition) for partition in assignment.unopened]
        if not pairs:
            return
        group = self._settings.group(self.name)
        stored = await self._admin.list_consumer_group_offsets(group, partitions=pairs)
        beginnings = await self._consumer.beginning_offsets(pairs)
        if assignment is not self._assignment:
            return
        for pair in pairs:
            place = stored.get(pair, OffsetAndMetadata(-1, ""))
            known = place.offset >= 0
            first = place.offset if known else beginnings[pair]
            planned = planned_end(first, place.metadata) if known else None
            assignment.buffers[pair.partition] = Buffer(pair.partition, first, self._limits, planned)
            self._consumer.seek(pair, first)

    def _pause(self, assignment: Assignment) -> None:
        paused = self._consumer.paused()
        for partition, buffer in assignment.buffers.items():
            pair = TopicPartition(self._topic, partition)
            if buffer.full and pair not in paused:
                self._consumer.pause(pair)
            elif not buffer.full and pair in paused:
                self._consumer.resume(pair)

    async def _flush(self, buffer: Buffer) -> None:
        async with self._slots:
            batch = buffer.cut()
            events = await self._rows(batch)
            try:
                if events:
                    await self._commit(batch, batch.first, plan_metadata(batch.end))
                    crash_point("sink.after_plan")
                    await self._insert(events, batch.token)
                    crash_point("sink.after_insert")
                await self._commit(batch, batch.end)
                crash_point("sink.after_commit")
            except (CommitFailedError, IllegalStateError):
                # The group rebalances. If the partition stays here, the same batch is cut again.
                await asyncio.sleep(REBALANCE_PAUSE_S)
                return
        buffer.done(batch, time.monotonic())

    async def _rows(self, batch: Batch) -> list[Row]:
        """The rows of the records that count; what cannot be read is a dead letter."""
        found: list[Row] = []
        for record in batch.records:
            if counted(record):
                try:
                    found.append(row_of(record))
                except UndecodableRecord as error:
                    await dead_letter(self._producer, self._settings.topics, record, "insert", error)
        return found

    async def _commit(self, batch: Batch, offset: int, metadata: str = "") -> None:
        pair = TopicPartition(self._topic, batch.partition)
        await self._consumer.commit({pair: OffsetAndMetadata(offset, metadata)})

    async def _insert(self, events: list[Row], token: str) -> None:
        """Insert until the store has taken it; the same token makes every try the same."""
        delay_s = RETRY_FIRST_S
        while True:
            try:
                began_s = time.monotonic()
                await self._store.insert(events, token)
                self._insert_s += (time.monotonic() - began_s - self._insert_s) * INSERT_WEIGHT
                break
            except StoreUnavailable as error:
                self._block(error)
                await asyncio.sleep(delay_s)
                delay_s = min(2 * delay_s, RETRY_MAX_S)
        if self._blocked:
            log.info("the store is back")
            self._unblock()

    def _block(self, error: StoreUnavailable) -> None:
        if not self._blocked:
            log.warning("the store is away; events wait in Kafka", error=error.message)
        self._blocked = True
        self._health.failed(error)
        self._health.progress(blocked="store")

    def _unblock(self) -> None:
        """No insert waits for the store any more: it took the last one, or that is somebody else's now."""
        if self._blocked:
            self._blocked = False
            self._health.ready(blocked=None)

    async def _tell_often(self) -> None:
        while True:
            assignment = self._assignment
            # Until it is known where this process stands it would lag by nothing.
            if assignment is not None and not assignment.unopened:
                with suppress(KafkaError, IllegalStateError):
                    ends = await self._ends(assignment.partitions)
                    if assignment is self._assignment:
                        self._tell(assignment.buffers, ends)
            await asyncio.sleep(TELL_S)

    async def _ends(self, partitions: Iterable[int]) -> dict[int, int]:
        """Where the log ends now; the consumer itself does not look while a partition is paused."""
        pairs = [TopicPartition(self._topic, partition) for partition in partitions]
        ends = await self._consumer.end_offsets(pairs) if pairs else {}
        return {pair.partition: end for pair, end in ends.items()}

    def _tell(self, buffers: Mapping[int, Buffer], ends: Mapping[int, int]) -> None:
        lag = {partition: max(0, ends[partition] - buffer.first) for partition, buffer in buffers.items()}
        self._lag.tell({(self._topic, partition): records for partition, records in lag.items()})
        self._health.progress(
            lag=sum(lag.values()),
            position=sum(buffer.first for buffer in buffers.values()),
            partitions=len(lag),
            buffered=sum(len(buffer.records) for buffer in buffers.values()),
        )

    async def _finish(self) -> None:
        assignment = self._assignment
        if assignment is not None:
            if assignment.flushes and not self._blocked:
                await asyncio.wait(assignment.flushes.values(), timeout=FINISH_TIMEOUT_S)
            await self._let_go(assignment)
        self._store.close()
