"""The metrics role over a real broker: the table, its changelog, takeovers, poison."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from pml.schemas.errors import LogCorrupted, WaitedTooLong
from pml.schemas.identifiers import session_key
from pml.streams.client import new_id
from pml.streams.connection import client_options
from pml.streams.health import Health
from pml.streams.log.append import Outgoing
from pml.streams.log.reader import event_headers
from pml.streams.projections.reader import MetricsReport, read_metrics
from pml.streams.projections.role import Metrics
from pml.streams.settings import Settings
from pml.streams.topics import ensure_topics
from pml.streams.worker import ensure_table
from tests.fixtures.commands import Command, start_role
from tests.fixtures.patience import PATIENCE_S
from tests.log_writer import (
    LogWriter,
    run_completed,
    run_started,
    speculation_ended,
    task_completed,
    task_started,
)

pytestmark = [pytest.mark.integration]
RUN = [
    run_started(),
    task_started(),
    task_completed(speculable=True),
    speculation_ended(),
    speculation_ended("discarded", "expired", tool="time:now"),
    task_completed("n2", served_by="repeat", saved_ms=2.0),
    run_completed(duration_ms=30),
]


@pytest.fixture
async def settings(kafka: str, tmp_path: Path) -> Settings:
    settings = Settings.load(
        data_dir=tmp_path,
        kafka={
            "bootstrap_servers": kafka,
            "topic_prefix": new_id("metrics") + ".",
            "session_timeout_s": 6,
            "heartbeat_s": 1,
        },
    )
    await ensure_topics(settings)
    await ensure_table(settings, "metrics")
    return settings


@asynccontextmanager
async def projecting(settings: Settings) -> AsyncIterator[Health]:
    """The role while it runs; its error, if it ends with one, is raised here."""
    health, stop = Health(settings.data_dir, "metrics"), asyncio.Event()
    running = asyncio.create_task(Metrics(settings, health).run(stop))
    try:
        yield health
    finally:
        stop.set()
        await asyncio.wait_for(running, PATIENCE_S)


async def until(condition: Callable[[], bool], failed: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, failed
        await asyncio.sleep(0.05)


async def write_runs(log: LogWriter, count: int) -> None:
    for _ in range(count):
        session = new_id("ses")
        await log.write(session, *RUN, run_id=session)


def figures(report: MetricsReport) -> tuple[int, ...]:
    shown: dict[str, Any] = report.as_dict()
    return (
        shown["hits"],
        shown["misses"],
        shown["repeats"],
        shown["wasted"],
        shown["runs"].get("completed", 0),
    )


async def test_figures_are_read_from_the_changelog(settings: Settings) -> None:
    async with LogWriter(settings) as log, projecting(settings) as health:
        await write_runs(log, 25)
        report = await read_metrics(settings, wait_s=PATIENCE_S)
        assert figures(report) == (25, 25, 25, 25, 25)
        shown = report.as_dict()
        assert shown["hit_rate"] == 0.5
        assert shown["tools"]["time:now"]["fates"] == {"discarded:expired": 25}
        assert shown["tools"]["git:log"]["hits"] == 25
        assert shown["saved_ms"] == 225.0
        assert shown["lag"] == 0
        await until(lambda: health.record.facts.get("position") == 25 * len(RUN), "health lags behind")
        assert (health.record.state, health.record.facts["lag"]) == ("ready", 0)


async def test_a_clean_restart_goes_on_where_it_was(settings: Settings) -> None:
    async with LogWriter(settings) as log:
        for total in (5, 10):
            async with projecting(settings):
                await write_runs(log, 5)
                report = await read_metrics(settings, wait_s=PATIENCE_S)
            assert figures(report) == (total,) * 5


async def test_a_killed_projection_counts_nothing_twice(settings: Settings) -> None:
    kafka = settings.kafka.model_copy(update={"group_instance_id": "the-metrics"})
    settings = settings.model_copy(update={"kafka": kafka})
    async with LogWriter(settings) as log:
        for total in (40, 80, 120):
            # Killed before the group's next commit: what was folded since then comes again.
            child = start_child(settings)
            await write_runs(log, 40)
            await read_metrics(settings, wait_s=PATIENCE_S)
            child.send_signal(signal.SIGKILL)
            await asyncio.to_thread(child.wait, PATIENCE_S)
            assert figures(await read_metrics(settings)) == (total,) * 5
        async with projecting(settings):
            await write_runs(log, 1)
            assert figures(await read_metrics(settings, wait_s=PATIENCE_S)) == (121,) * 5


def start_child(settings: Settings) -> Command:
    environment = {**os.environ, **settings.environment()}
    return start_role("metrics", environment, settings.data_dir / "child.log", settings.data_dir)


async def test_partitions_move_between_two_and_nothing_is_lost_or_doubled(settings: Settings) -> None:
    other = settings.model_copy(update={"data_dir": settings.data_dir / "other"})
    async with LogWriter(settings) as log, projecting(settings) as first:
        await write_runs(log, 20)
        async with projecting(other) as second:
            for _ in range(10):
                await write_runs(log, 2)
            await until(lambda: second.record.facts.get("partitions") == 6, "the partitions were not shared")
            await write_runs(log, 20)
            assert figures(await read_metrics(settings, wait_s=PATIENCE_S)) == (60,) * 5
        await write_runs(log, 20)
        assert figures(await read_metrics(settings, wait_s=PATIENCE_S)) == (80,) * 5
        await until(lambda: first.record.facts.get("partitions") == 12, "the partitions did not come back")


async def test_poison_between_good_records_is_a_dead_letter(settings: Settings) -> None:
    async with LogWriter(settings) as log, projecting(settings):
        first = (await log.write("ses_1", speculation_ended(), run_id="run_1"))[0]
        broken = first.model_copy(update={"seq": 1, "offset": first.offset + 1})
        late = first.model_copy(update={"seq": 1})
        key = session_key("local", "ses_1")
        records = [
            Outgoing(key, b"\xff not json", event_headers(broken)),
            Outgoing(key, b'{"type":"speculation.ended"}', event_headers(late)),
        ]
        await log.write_records(log.partition("ses_1"), records)
        await log.write("ses_1", speculation_ended(), run_id="run_1")
        report = await read_metrics(settings, wait_s=PATIENCE_S)
    assert report.as_dict()["hits"] == 2
    letter = await first_record(settings, settings.topics.dead_letters)
    assert letter.value == b"\xff not json"
    assert dict(letter.headers)["pml-dlq-stage"] == b"project"


async def first_record(settings: Settings, topic: str) -> Any:
    consumer = AIOKafkaConsumer(**client_options(settings), auto_offset_reset="earliest")
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topic, 0)])
        return await asyncio.wait_for(consumer.getone(), PATIENCE_S)
    finally:
        await consumer.stop()


async def test_an_event_of_a_newer_release_stops_the_role_with_a_sentence(settings: Settings) -> None:
    async with LogWriter(settings) as log:
        partition = log.partition("ses_1")
        headers = [("pml-type", b"speculation.ended"), ("pml-offset", str(log.end(partition)).encode())]
        value = b'{"type":"speculation.ended","version":9,"data":{}}'
        await log.write_records(partition, [Outgoing(session_key("local", "ses_1"), value, headers)])
    with pytest.raises(LogCorrupted, match="upgrade PML"):
        await asyncio.wait_for(
            Metrics(settings, Health(settings.data_dir, "metrics")).run(asyncio.Event()), PATIENCE_S
        )


async def test_metrics_without_the_role_are_empty_and_say_how_far_behind(settings: Settings) -> None:
    async with LogWriter(settings) as log:
        await log.write("ses_1", speculation_ended(), run_id="run_1")
    report = await read_metrics(settings)
    assert (report.as_dict()["hits"], report.lag) == (0, 1)
    with pytest.raises(WaitedTooLong, match="1 records behind"):
        await read_metrics(settings, wait_s=0.3)
