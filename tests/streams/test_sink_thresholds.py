"""The history of thresholds between a real catalog and the real embedded ClickHouse."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from pml.clickhouse.client import Store
from pml.clickhouse.migrate import migrate
from pml.clickhouse.query import run_query
from pml.schemas.catalog import CatalogRecord, SpeculationSwitch, ThresholdRecord
from pml.schemas.codec import encode
from pml.streams.client import new_id
from pml.streams.connection import producer_options
from pml.streams.health import Health
from pml.streams.settings import Settings
from pml.streams.sink import Sink
from pml.streams.threshold_overrides import publish_override
from pml.streams.topics import ensure_topics
from tests.fixtures.patience import PATIENCE_S

pytestmark = [pytest.mark.integration]
KEY = "local/type=audit"


@pytest.fixture
def settings(kafka: str, clickhouse_url: str, database: str, tmp_path: Path) -> Iterator[Settings]:
    settings = Settings.load(
        data_dir=tmp_path,
        clickhouse={"url": clickhouse_url, "database": database},
        kafka={
            "bootstrap_servers": kafka,
            "topic_prefix": new_id("history") + ".",
            "session_timeout_s": 6,
            "heartbeat_s": 1,
        },
    )
    asyncio.run(ensure_topics(settings))
    with Store.connect(clickhouse_url, database, answer_timeout_s=PATIENCE_S) as store:
        migrate(store)
        yield settings
        store.command(f"DROP DATABASE {database} SYNC", use_database=False)


@pytest.fixture
def store(settings: Settings, clickhouse_url: str, database: str) -> Iterator[Store]:
    with Store.connect(clickhouse_url, database, answer_timeout_s=PATIENCE_S) as store:
        yield store


@asynccontextmanager
async def sinking(settings: Settings) -> AsyncIterator[None]:
    stop = asyncio.Event()
    running = asyncio.create_task(Sink(settings, Health(settings.data_dir, "sink")).run(stop))
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait_for(running, PATIENCE_S)


def change(windows: int, state: str = "converged") -> ThresholdRecord:
    return ThresholdRecord.model_validate(
        {
            "tenant": "local",
            "level": "type",
            "workflow_type": "audit",
            "value": 0.92 - windows / 100,
            "previous": 0.93 - windows / 100,
            "ema": 0.88,
            "success_rate": 0.9,
            "windows": windows,
            "outcomes": 50 * windows,
            "state": state,
            "reason": "tuned",
            "changed_at": f"2020-01-01T10:{windows:02}:00.000000Z",
        }
    )


async def publish(settings: Settings, *records: CatalogRecord | None) -> None:
    producer = AIOKafkaProducer(**producer_options(settings))
    await producer.start()
    try:
        for record in records:
            value = encode(record) if record else b"not json"
            key = record.key if record else b"threshold/broken"
            await producer.send_and_wait(settings.topics.catalog, value=value, key=key)
    finally:
        await producer.stop()


def learned(windows: int, state: str = "converged") -> CatalogRecord:
    return CatalogRecord(kind="threshold", id=KEY, data=change(windows, state))


async def until_rows(store: Store, sql: str, count: int) -> list[dict[str, Any]]:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        rows = (await asyncio.to_thread(store.query, sql)).as_dicts()
        if len(rows) >= count:
            return rows
        assert time.monotonic() < deadline, rows
        await asyncio.sleep(0.1)


async def test_each_change_is_a_row_once_over_restarts_and_repeats(settings: Settings, store: Store) -> None:
    switch = CatalogRecord(kind="switch", id="speculation", data=SpeculationSwitch())
    await publish(settings, learned(1, "drifting"), switch, None, learned(2, "drifting"))
    async with sinking(settings):
        await until_rows(store, "SELECT 1 FROM thresholds", 2)
        # The projection crashed and publishes its last window again.
        await publish(settings, learned(2, "drifting"), learned(3))
        await until_rows(store, "SELECT 1 FROM thresholds", 3)
    await publish(settings, learned(4))
    await publish_override(settings, KEY, 0.8, "ann")
    await publish_override(settings, KEY, None, "bob")
    async with sinking(settings):
        rows = await until_rows(store, "SELECT * FROM thresholds ORDER BY log_offset", 6)
    assert [(row["source"], row["outcomes"], row["reason"], row["principal"]) for row in rows] == [
        ("learned", 50, "tuned", ""),
        ("learned", 100, "tuned", ""),
        ("learned", 150, "tuned", ""),
        ("learned", 200, "tuned", ""),
        ("manual", 0, "set", "ann"),
        ("manual", 0, "unset", "bob"),
    ]
    assert (rows[0]["previous"], rows[0]["value"], rows[0]["ema"], rows[0]["success_rate"]) == (
        0.92,
        0.91,
        0.88,
        0.9,
    )
    assert [row["value"] for row in rows[4:]] == [0.8, None]
    assert rows[0]["changed_at"] == "2020-01-01T10:01:00.000000Z"
    history = run_query(store, "threshold_history").as_dicts()
    assert [row["why"] for row in history[:2]] == ["unset by bob", "set by ann"]
    (now,) = run_query(store, "threshold_states").as_dicts()
    assert (now["threshold"], now["state_now"], now["all_outcomes"]) == (0.88, "converged", 200)
    assert (now["drifting_until"], now["outcomes_to_converge"]) == (100, 150)


async def test_a_catalog_that_was_made_anew_is_read_from_its_beginning(
    settings: Settings, store: Store
) -> None:
    # As if this store had belonged to a broker whose catalog was longer.
    other = [0, 999, "local", KEY, "type", "learned", 1, 50, "2020-01-01T09:00:00.000000Z"]
    names = ["partition", "log_offset", "tenant", "context_key", "level", "source", "windows", "outcomes"]
    values = ", ".join(map(repr, other))
    store.command(f"INSERT INTO thresholds_raw ({', '.join([*names, 'changed_at'])}) VALUES ({values})")
    await publish(settings, learned(1))
    async with sinking(settings):
        rows = await until_rows(store, "SELECT DISTINCT log_offset FROM thresholds_raw", 2)
    assert sorted(row["log_offset"] for row in rows) == [0, 999]
