"""The sink between a real broker and the real embedded ClickHouse, with faults."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from pml.clickhouse.client import Store
from pml.clickhouse.migrate import migrate
from pml.schemas.codec import encode
from pml.schemas.errors import ConfigurationError, LogCorrupted, StoreUnavailable
from pml.schemas.identifiers import session_key
from pml.streams.client import new_id
from pml.streams.connection import client_options
from pml.streams.health import Health
from pml.streams.log.append import Outgoing
from pml.streams.log.reader import event_headers
from pml.streams.settings import Settings
from pml.streams.sink import Sink
from pml.streams.sink_store import SinkStore
from pml.streams.topics import ensure_topics
from tests.fixtures.commands import Command, start_role
from tests.fixtures.patience import PATIENCE_S
from tests.fixtures.store import EmbeddedServer, start_embedded
from tests.log_writer import (
    LogWriter,
    run_completed,
    run_started,
    speculation_ended,
    task_completed,
    task_started,
)

pytestmark = [pytest.mark.integration]
RUN = [run_started(), task_started(), task_completed(), speculation_ended(), run_completed()]


@pytest.fixture
def settings(kafka: str, clickhouse_url: str, database: str, tmp_path: Path) -> Iterator[Settings]:
    settings = settings_for(kafka, clickhouse_url, database, tmp_path)
    asyncio.run(ensure_topics(settings))
    with Store.connect(clickhouse_url, database, answer_timeout_s=PATIENCE_S) as store:
        migrate(store)
        # A merge would hide what was inserted twice.
        for table in ("events_raw", "tasks_raw", "speculations_raw", "runs_raw"):
            store.command(f"SYSTEM STOP MERGES {database}.{table}")
        yield settings
        store.command(f"DROP DATABASE {database} SYNC", use_database=False)


def settings_for(kafka: str, url: str, database: str, folder: Path) -> Settings:
    return Settings.load(
        data_dir=folder,
        kafka={
            "bootstrap_servers": kafka,
            "topic_prefix": new_id("sink") + ".",
            "session_timeout_s": 6,
            "heartbeat_s": 1,
        },
        clickhouse={"url": url, "database": database},
        sink={"batch_rows": 50, "batch_wait_ms": 50},
    )


@asynccontextmanager
async def sinking(settings: Settings) -> AsyncIterator[Health]:
    """A sink that runs; its error, if it ends with one, is raised here."""
    health, stop = Health(settings.data_dir, "sink"), asyncio.Event()
    running = asyncio.create_task(Sink(settings, health).run(stop))
    try:
        yield health
    finally:
        stop.set()
        await asyncio.wait_for(running, PATIENCE_S)


async def until(condition: Callable[[], bool], failed: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not await asyncio.to_thread(condition):
        assert time.monotonic() < deadline, failed
        await asyncio.sleep(0.05)


def stored(settings: Settings, table: str = "events_raw") -> list[tuple[int, int]]:
    """Partition and offset of every row, repeated ones included."""
    url = settings.clickhouse.url
    assert url is not None
    with Store.connect(
        url.get_secret_value(), settings.clickhouse.database, answer_timeout_s=PATIENCE_S
    ) as store:
        answer = store.query(f"SELECT partition, log_offset FROM {table} ORDER BY 1, 2")
    return [(int(partition), int(offset)) for partition, offset in answer.rows]


async def write_runs(log: LogWriter, count: int) -> list[tuple[int, int]]:
    """Whole runs of a session each; where their events lie."""
    places: list[tuple[int, int]] = []
    for _ in range(count):
        session = new_id("ses")
        events = await log.write(session, *RUN, run_id=session)
        places += [(log.partition(session), event.offset) for event in events]
    return sorted(places)


async def test_each_event_that_counts_is_stored_once(settings: Settings) -> None:
    async with LogWriter(settings) as log, sinking(settings) as health:
        written = await write_runs(log, 30)
        late = (await log.write("ses_late", run_started(), run_id="run_1"))[0]
        written.append((log.partition("ses_late"), late.offset))
        void = Outgoing(session_key("local", "ses_late"), encode(late), event_headers(late))
        await log.write_records(log.partition("ses_late"), [void, Outgoing(None, b"garbage")])
        written += await write_runs(log, 10)
        await until(lambda: len(stored(settings)) >= len(written), "events are missing")
        assert stored(settings) == sorted(written)
        records = len(written) + 2
        await until(
            lambda: health.record.facts.get("position", 0) >= records, "the sink does not say where it is"
        )
    assert health.record.facts["lag"] == 0


async def test_views_have_a_row_for_each_end(settings: Settings) -> None:
    async with LogWriter(settings) as log, sinking(settings):
        await write_runs(log, 7)
        await until(lambda: len(stored(settings)) == 35, "events are missing")
    for table in ("tasks_raw", "speculations_raw"):
        assert len(stored(settings, table)) == 7


async def test_what_cannot_be_read_is_a_dead_letter_and_the_next_is_stored(settings: Settings) -> None:
    async with LogWriter(settings) as log, sinking(settings):
        first = (await log.write("ses_1", run_started(), run_id="run_1"))[0]
        partition = log.partition("ses_1")
        broken = first.model_copy(update={"seq": 1, "offset": first.offset + 1})
        record = Outgoing(session_key("local", "ses_1"), b"{not json", event_headers(broken))
        await log.write_records(partition, [record])
        await log.write("ses_1", run_completed(), run_id="run_1")
        await until(lambda: len(stored(settings)) == 2, "the event after the broken one is missing")
    assert stored(settings) == [(partition, first.offset), (partition, first.offset + 2)]
    letter = await first_record(settings, settings.topics.dead_letters)
    headers = dict(letter.headers)
    assert letter.value == b"{not json"
    assert headers["pml-dlq-stage"] == b"insert"
    assert headers["pml-dlq-code"] == b"UNDECODABLE"
    assert headers["pml-dlq-offset"] == str(first.offset + 1).encode()


async def first_record(settings: Settings, topic: str) -> object:
    consumer = AIOKafkaConsumer(**client_options(settings), auto_offset_reset="earliest")
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topic, 0)])
        return await asyncio.wait_for(consumer.getone(), PATIENCE_S)
    finally:
        await consumer.stop()


async def test_an_event_of_a_newer_release_stops_the_sink_with_a_sentence(settings: Settings) -> None:
    async with LogWriter(settings) as log:
        partition = log.partition("ses_1")
        headers = [("pml-type", b"run.started"), ("pml-offset", str(log.end(partition)).encode())]
        value = b'{"type":"run.started","version":9,"data":{}}'
        await log.write_records(partition, [Outgoing(session_key("local", "ses_1"), value, headers)])
    with pytest.raises(LogCorrupted, match="version 9 is not known"):
        await asyncio.wait_for(
            Sink(settings, Health(settings.data_dir, "sink")).run(asyncio.Event()), PATIENCE_S
        )
    assert stored(settings) == []


@pytest.mark.parametrize("point", ["sink.after_plan", "sink.after_insert", "sink.after_commit"])
async def test_a_crash_at_any_step_leaves_each_event_once(settings: Settings, point: str) -> None:
    # A member that comes back under its own name takes its partitions at once.
    kafka = settings.kafka.model_copy(update={"group_instance_id": "the-sink"})
    settings = settings.model_copy(update={"kafka": kafka})
    async with LogWriter(settings) as log:
        written = await write_runs(log, 20)
        crashed = start_sink(settings, f"{point}:3")
        assert await asyncio.to_thread(crashed.wait, PATIENCE_S) == -signal.SIGKILL
        written += await write_runs(log, 20)
        async with sinking(settings):
            await until(lambda: len(stored(settings)) >= len(written), "events are missing")
        assert stored(settings) == sorted(written)
        assert len(stored(settings, "tasks_raw")) == 40


def start_sink(settings: Settings, crash_at: str) -> Command:
    environment = {**os.environ, **settings.environment(), "PML_CRASH_AT": crash_at}
    return start_role("sink", environment, settings.data_dir / "child.log", settings.data_dir)


async def test_two_sinks_share_the_partitions_and_a_rebalance_doubles_nothing(settings: Settings) -> None:
    async with LogWriter(settings) as log, sinking(settings):
        written = await write_runs(log, 10)
        async with sinking(settings) as second:
            for _ in range(10):
                written += await write_runs(log, 4)
            await until(lambda: bool(second.record.facts.get("partitions")), "the second sink got nothing")
            written += await write_runs(log, 20)
            await until(lambda: len(stored(settings)) >= len(written), "events are missing")
        written += await write_runs(log, 10)
        await until(lambda: len(stored(settings)) >= len(written), "events are missing")
    assert stored(settings) == sorted(written)


class Turnstile:
    """Holds inserts back; one that is cancelled there ends only after its sink has looked around again."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.held = self.cancelled = self.turns = 0
        self.opened = asyncio.Event()
        insert, getmany = SinkStore.insert, AIOKafkaConsumer.getmany

        async def held_insert(store: SinkStore, *values: Any, **named: Any) -> None:
            self.held += 1
            try:
                await self.opened.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                turns = self.turns
                while self.turns == turns:
                    await asyncio.sleep(0.01)
                raise
            await insert(store, *values, **named)

        async def counted_getmany(consumer: AIOKafkaConsumer, *values: Any, **named: Any) -> Any:
            self.turns += 1
            return await getmany(consumer, *values, **named)

        monkeypatch.setattr(SinkStore, "insert", held_insert)
        monkeypatch.setattr(AIOKafkaConsumer, "getmany", counted_getmany)


async def test_a_sink_goes_on_while_a_rebalance_ends_its_inserts_one_after_the_other(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    turnstile = Turnstile(monkeypatch)
    async with LogWriter(settings) as log, sinking(settings):
        written = await write_runs(log, 30)
        await until(lambda: turnstile.held >= 2, "nothing is inserted")
        async with sinking(settings):
            await until(lambda: turnstile.cancelled >= 2, "the group does not rebalance")
            turnstile.opened.set()
            await until(lambda: len(stored(settings)) >= len(written), "events are missing")
        written += await write_runs(log, 30)
        await until(lambda: len(stored(settings)) >= len(written), "events are missing after the rebalance")
    assert stored(settings) == sorted(written)


async def test_a_store_without_tables_is_one_clear_error(settings: Settings, clickhouse_url: str) -> None:
    clickhouse = settings.clickhouse.model_copy(update={"database": "nobody_made_it"})
    settings = settings.model_copy(update={"clickhouse": clickhouse})
    async with LogWriter(settings) as log:
        await write_runs(log, 1)
    with pytest.raises(ConfigurationError, match="pml migrate"):
        await asyncio.wait_for(
            Sink(settings, Health(settings.data_dir, "sink")).run(asyncio.Event()), PATIENCE_S
        )


@pytest.fixture
def own_store(tmp_path: Path) -> Iterator[list[EmbeddedServer]]:
    """A store that the test may kill and start again; the last one of the list runs."""
    servers = [start_embedded(tmp_path / "store")]
    yield servers
    servers[-1].kill()


async def test_a_store_that_is_away_loses_and_doubles_nothing(
    kafka: str, own_store: list[EmbeddedServer], tmp_path: Path
) -> None:
    settings = settings_for(kafka, own_store[0].url, "pml", tmp_path)
    port = int(own_store[0].url.rpartition(":")[2].strip("/"))
    await ensure_topics(settings)
    with Store.connect(own_store[0].url, "pml", answer_timeout_s=PATIENCE_S) as store:
        migrate(store)
    async with LogWriter(settings) as log, sinking(settings) as health:
        written = await write_runs(log, 5)
        await until(lambda: len(stored(settings)) == len(written), "events are missing")
        own_store[0].kill()
        written += await write_runs(log, 100)
        for _ in range(60):
            events = await log.write("ses_busy", *RUN, run_id="run_1")
            written += [(log.partition("ses_busy"), event.offset) for event in events]
        await until(lambda: health.record.facts.get("blocked") == "store", "the sink does not say so")
        assert health.record.state == "failed"
        await until(lambda: health.record.facts.get("lag", 0) >= 800, "the sink does not say what waits")
        # A full partition is not read on: at most a batch and what one read overshoots by, each.
        assert health.record.facts["buffered"] <= 12 * 2 * 50
        assert health.record.facts["buffered"] < health.record.facts["lag"]
        own_store.append(start_embedded(tmp_path / "store", port))
        assert own_store[-1].url == own_store[0].url
        await until(lambda: len(stored(settings)) >= len(written), "events are missing")
        await until(lambda: health.record.state == "ready", "the sink does not say that all is well again")
        assert health.record.facts["blocked"] is None
    assert stored(settings) == sorted(written)


@pytest.mark.parametrize("stops", [False, True])
async def test_a_sink_whose_waiting_insert_is_somebody_elses_now_is_blocked_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stops: bool
) -> None:
    """But one that stops says nothing better of a store that is away."""

    async def away(*_: Any, **__: Any) -> None:
        raise StoreUnavailable("the store does not answer")

    settings = Settings.load(data_dir=tmp_path, kafka={"bootstrap_servers": "127.0.0.1:1"})
    health = Health(tmp_path, "sink")
    sink, pair = Sink(settings, health), TopicPartition(settings.topics.events, 0)
    monkeypatch.setattr(SinkStore, "insert", away)
    await sink.on_partitions_assigned([pair])
    assert sink._assignment is not None
    sink._assignment.flushes[0] = asyncio.create_task(sink._insert([], "0-0-1"))
    await until(lambda: health.record.state == "failed", "the sink does not say so")
    await (sink._finish() if stops else sink.on_partitions_revoked([pair]))
    expected = ("failed", "store") if stops else ("ready", None)
    assert (health.record.state, health.record.facts["blocked"]) == expected
