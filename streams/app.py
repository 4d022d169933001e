"""Faust as PML uses it: whole chunks instead of single records, positions that we choose, idempotent sends.

Faust's cost is per message, not per record (175,000 records/s in chunks, 5,000 one by one). An agent over
a topic of `chunk_topic` gets one event for each (partition, at most 200 records), whose value is the list of
aiokafka records and whose offset is the last one's. Private parts of Faust and aiokafka that are overridden
here are asserted by tests/streams/test_app.py, so that an upgrade that moves them fails there.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import faust
import structlog
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.connection import faust_broker
from pml.streams.long_polls import poll_long_when_idle
from pml.streams.settings import Settings

log = structlog.get_logger("pml.app")

Positions = Callable[[set[TP]], Mapping[TP, int]]
# Faust's own 1.5 s holds up a partition that was left out of a poll in flight; 50 ms costs 20 requests/s.
# Only under load: an idle consumer waits longer (long_polls.py).
FETCH_WAIT_MS = 50
# Commits only show lag; half a second keeps `pml status` honest.
COMMIT_INTERVAL_S = 0.5
REBALANCE_TIMEOUT_S = 20.0
# A role that failed has nothing left to finish; without a broker Faust waits 90 s for an answer.
LEAVE_TIMEOUT_S = 5.0
# The last steps of a rebalance take a few milliseconds; nothing of Faust tells when they are done.
REBALANCE_POLL_S = 0.01
# One fetch of a partition holds a whole input of the largest size, or a thousand small ones.
PARTITION_FETCH_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Delivery:
    """How records reach the agents, and where each partition begins after a rebalance.

    A poll that finds less than `fetch_min_bytes` waits for more, at most `fetch_wait_ms`.
    """

    chunk_records: int
    chunk_bytes: int
    positions: Positions
    fetch_min_bytes: int = 1
    fetch_wait_ms: int = FETCH_WAIT_MS


class ChunkApp(faust.App):
    """A Faust app that knows how its consumer delivers."""

    delivery: Delivery


class Fetched(dict[TP, Any]):
    """Records by partition, and how often each partition had been sought when they were fetched."""

    seeks: Mapping[TP, int]


class ChunkThread(driver.AIOKafkaConsumerThread):
    """The consumer's thread; it counts the seeks that fetches come before or after."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.seeks: Counter[TP] = Counter()

    async def on_start(self) -> None:
        await super().on_start()
        if self.app.delivery.fetch_min_bytes == 1:  # else the wait gathers records
            poll_long_when_idle(self._consumer)

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_min_bytes = transport.app.delivery.fetch_min_bytes
        consumer._fetch_max_wait_ms = transport.app.delivery.fetch_wait_ms
        return consumer

    async def _seek_wait(self, consumer: Any, partitions: Mapping[TP, int]) -> None:
        # Nothing is awaited before all positions are set: a fetch sees count and position, or neither.
        self.seeks.update(partitions.keys())
        await super()._seek_wait(consumer, partitions)

    async def _fetch_records(
        self,
        consumer: Any,
        active_partitions: set[TP],
        timeout: float | None = None,
        max_records: int | None = None,
    ) -> Fetched:
        records = await super()._fetch_records(consumer, active_partitions, timeout, max_records)
        fetched = Fetched(records)
        fetched.seeks = {tp: self.seeks[tp] for tp in records}
        return fetched


class ChunkConsumer(driver.Consumer):
    """Delivers chunks of input topics and single records of changelogs."""

    app: ChunkApp
    _sought_generation: int | None = None

    def _new_consumer_thread(self) -> ChunkThread:
        return ChunkThread(self, loop=self.loop, beacon=self.beacon)

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[TP, Any]]:
        """One message for each chunk that was fetched from where its partition was last sought.

        A fetch may outlast a rebalance. What it brings of a partition that was sought meanwhile is passed
        over, and so are inputs until the rebalance has sought them: both are read again. What is current is
        read only once, so it waits: a changelog until the flow is on, an input until the rebalance has ended
        (Faust empties the agents' queues until then).
        """
        records, _ = await self._wait_next_records(timeout)
        if not records:
            return
        for tp, message in self._messages(records):
            if await self._is_wanted(tp, records):
                self._note_end(tp)
                yield tp, message

    def _note_end(self, tp: TP) -> None:
        """Tell Faust's monitor where the partition ends."""
        # aiokafka asserts that the partition is ours; its thread may lose it at this very moment.
        with suppress(AssertionError, AttributeError):
            self.app.monitor.track_tp_end_offset(tp, self.highwater(tp))

    async def _is_wanted(self, tp: TP, fetched: Fetched) -> bool:
        while self._is_current(tp, fetched) and not self.should_stop:
            if self.flow_active and (self._is_changelog_tp(tp) or not self.app.rebalancing):
                return True
            await self.sleep(REBALANCE_POLL_S)
        return False

    def _is_current(self, tp: TP, fetched: Fetched) -> bool:
        if fetched.seeks[tp] != self._thread.seeks[tp]:
            return False
        return self._is_changelog_tp(tp) or self._sought_generation == self.app.consumer_generation_id

    def _messages(self, records: Mapping[TP, Sequence[Any]]) -> Iterator[tuple[TP, Any]]:
        """Chunks of all partitions in turn, so that a full one does not keep the others waiting."""
        limits = self.app.delivery
        queues = [
            [
                (tp, self._message(tp, part))
                for part in cut_chunks(found, limits.chunk_records, limits.chunk_bytes)
            ]
            if not self._is_changelog_tp(tp)
            else [(tp, self._to_message(tp, record)) for record in found]
            for tp, found in records.items()
        ]
        return (item for turn in zip_longest(*queues) for item in turn if item is not None)

    def _message(self, tp: TP, chunk: list[Any]) -> Any:
        message = self._to_message(tp, chunk[-1])
        message.key, message.value = None, chunk
        return message

    def _new_offset(self, tp: TP) -> int | None:
        """The next offset after the highest acknowledged one: chunks are acknowledged in order."""
        acked = self._acked[tp]
        if not acked:
            return None
        offset = max(acked) + 1
        acked.clear()
        self._acked_index[tp].clear()
        return offset

    async def _add_gap(self, tp: TP, offset_from: int, offset_to: int) -> None:
        """A chunk's offset is its last record's; what looks like a gap before it is the chunk."""

    async def perform_seek(self) -> None:
        """Begin where the app says, and where it says nothing at what the group committed.

        Without this, records that were fetched while the flow stood are skipped for good where nothing
        was committed yet (4 of 4 starts in ORCHESTRATOR.md). The generation is noted before the last seek,
        because the thread may deliver from there before it tells us that it has sought, and reads nothing
        twice. What it fetched earlier is known by its count of seeks.
        """
        generation = self.app.consumer_generation_id
        await super().perform_seek()
        assigned = self.assignment()
        committed = {tp: self._committed_offset[tp] or 0 for tp in assigned if not self._is_changelog_tp(tp)}
        self._sought_generation = generation
        try:
            await self._thread.seek_wait({**committed, **self.app.delivery.positions(assigned)})
        except BaseException:
            self._sought_generation = None
            raise


class IdempotentProducer(driver.Producer):
    """Faust's producer, acknowledged by all replicas and without duplicates."""

    def _settings_extra(self) -> Mapping[str, Any]:
        return {"acks": "all", "enable_idempotence": True}


class ChunkTransport(driver.Transport):
    """Puts the consumer and producer above into Faust."""

    Consumer = ChunkConsumer
    Producer = IdempotentProducer


class ChunkSchema(faust.Schema):
    """Passes keys and chunks through untouched."""

    def loads_key(self, app: Any, message: Any, **options: Any) -> Any:
        return message.key

    def loads_value(self, app: Any, message: Any, **options: Any) -> Any:
        return message.value


def make_app(
    role: str,
    settings: Settings,
    *,
    positions: Positions = lambda assigned: {},
    instance_id: str | None = None,
) -> ChunkApp:
    """A Faust app whose id and consumer group is `<prefix><role>`, not started.

    Args:
        positions: where partitions begin after a rebalance; those it leaves out begin at the commit.
        instance_id: for static membership, so that a restarted worker gets its partitions back at once.

    Raises:
        BrokerUnavailable: no broker is configured or running.
    """
    kafka = settings.kafka
    folder = settings.data_dir / "faust" / role
    folder.parent.mkdir(parents=True, exist_ok=True)
    app = ChunkApp(
        settings.group(role),
        **faust_broker(settings),
        store="memory://",
        datadir=str(folder),
        web_enabled=False,
        topic_disable_leader=True,
        topic_partitions=SESSION_PARTITIONS,
        topic_replication_factor=kafka.replication_factor,
        cython_optimizations=True,
        stream_wait_empty=False,
        broker_commit_interval=COMMIT_INTERVAL_S,
        broker_session_timeout=kafka.session_timeout_s,
        broker_heartbeat_interval=kafka.heartbeat_s,
        broker_request_timeout=max(90.0, kafka.session_timeout_s),
        broker_rebalance_timeout=max(REBALANCE_TIMEOUT_S, kafka.session_timeout_s),
        consumer_max_fetch_size=PARTITION_FETCH_BYTES,
        consumer_auto_offset_reset="earliest",
        consumer_group_instance_id=instance_id or kafka.group_instance_id,
        table_standby_replicas=0,
    )
    app.delivery = Delivery(settings.orchestrator.chunk_records, settings.orchestrator.chunk_bytes, positions)
    app.transport = ChunkTransport(app.conf.broker_consumer, app)
    return app


def chunk_topic(app: ChunkApp, *names: str) -> Any:
    """Topics whose events are chunks; they must exist."""
    return app.topic(*names, schema=ChunkSchema(), internal=False)


async def run_app(app: ChunkApp, stop: asyncio.Event, *failures: asyncio.Future[Any]) -> None:
    """Run the app until `stop` is set; whatever else ends it is raised.

    An app that failed is left after `LEAVE_TIMEOUT_S` where it does not stop, as kill -9 would leave it.

    Raises:
        BaseException: why Faust crashed, or the first of `failures` that has an exception.
    """
    app.finalize()
    try:
        await _run_until(app, stop, failures)
    except BaseException:
        await _leave(app)
        raise
    await app.stop()


async def _run_until(app: ChunkApp, stop: asyncio.Event, failures: Sequence[asyncio.Future[Any]]) -> None:
    await app.start()
    waiting = [asyncio.ensure_future(app.wait_first(stop.wait())), *failures]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for failure in failures:
        if failure.done() and not failure.cancelled():
            failure.result()
    if not stop.is_set():
        raise app.crash_reason or RuntimeError(f"{app.conf.id} ended without being told to")


async def _leave(app: ChunkApp) -> None:
    stopping = asyncio.ensure_future(app.stop())
    await asyncio.wait([stopping], timeout=LEAVE_TIMEOUT_S)
    if not stopping.done():
        log.warning("left before it had stopped", app=app.conf.id, after_s=LEAVE_TIMEOUT_S)
    elif not stopping.cancelled() and (error := stopping.exception()) is not None:
        log.warning("did not stop cleanly", app=app.conf.id, error=str(error))


def cut_chunks(records: Sequence[Any], limit: int, limit_bytes: int) -> Iterator[list[Any]]:
    """Parts of at most `limit` records and `limit_bytes`, at least one record each."""
    part: list[Any] = []
    size = 0
    for record in records:
        added = len(record.value or b"") + len(record.key or b"")
        if part and (len(part) == limit or size + added > limit_bytes):
            yield part
            part, size = [], 0
        part.append(record)
        size += added
    if part:
        yield part


def restored(app: ChunkApp) -> int:
    """How far the changelogs of its tables were read, over all partitions: it grows while a role starts."""
    return sum(offset or 0 for offset in app.tables.recovery.active_offsets.values())
