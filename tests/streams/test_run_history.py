"""Runs as people look at them, also where the store is a moment behind the log."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from pml.clickhouse.client import Store
from pml.clickhouse.migrate import migrate
from pml.clickhouse.rows import EVENT_COLUMNS, EVENTS_TABLE, event_row
from pml.schemas.events import Event
from pml.streams.client import new_id
from pml.streams.connection import partition_for
from pml.streams.run_history import NoSuchRun, run_events
from pml.streams.settings import Settings
from pml.streams.topics import ensure_topics
from tests.fixtures.patience import PATIENCE_S
from tests.log_writer import LogWriter, run_completed, run_started, task_completed, task_started

pytestmark = [pytest.mark.integration]
RUN = [run_started(), task_started(), task_completed(), run_completed()]


@pytest.fixture
def settings(kafka: str, clickhouse_url: str, database: str, tmp_path: Path) -> Iterator[Settings]:
    found = Settings.load(
        data_dir=tmp_path,
        kafka={"bootstrap_servers": kafka, "topic_prefix": f"history-{uuid.uuid4().hex[:8]}."},
        clickhouse={"url": clickhouse_url, "database": database},
    )
    asyncio.run(ensure_topics(found))
    with Store.connect(clickhouse_url, database, answer_timeout_s=PATIENCE_S) as store:
        migrate(store)
        yield found
        store.command(f"DROP DATABASE {database} SYNC", use_database=False)


def keep(settings: Settings, events: list[Event]) -> None:
    """Put events into the store, as the sink would."""
    assert settings.clickhouse.url is not None
    partition = partition_for(f"local/{events[0].session_id}".encode())
    rows = [event_row(partition, event.model_dump(exclude_none=True)) for event in events]
    with Store.connect(
        settings.clickhouse.url.get_secret_value(), settings.clickhouse.database, answer_timeout_s=PATIENCE_S
    ) as store:
        store.insert(EVENTS_TABLE, EVENT_COLUMNS, rows)


async def test_a_run_that_the_store_does_not_have_yet_is_read_from_the_log(settings: Settings) -> None:
    run_id = new_id("run")
    async with LogWriter(settings) as log:
        written = await log.write(run_id, *RUN, run_id=run_id)
    assert await run_events(settings, "local", run_id, None) == written


async def test_a_run_whose_end_the_store_does_not_have_yet_is_read_from_the_log(settings: Settings) -> None:
    run_id, session_id = new_id("run"), new_id("ses")
    async with LogWriter(settings) as log:
        written = await log.write(session_id, *RUN, run_id=run_id)
    keep(settings, written[:2])
    assert await run_events(settings, "local", run_id, None) == written


async def test_a_run_that_ended_is_read_from_the_store_alone(settings: Settings) -> None:
    run_id = new_id("run")
    async with LogWriter(settings) as log:
        written = await log.write(run_id, *RUN, run_id=run_id)
    keep(settings, [written[0], written[-1]])
    assert await run_events(settings, "local", run_id, None) == [written[0], written[-1]]


async def test_a_run_that_nobody_knows_is_an_error_that_says_where_it_was_looked_for(
    settings: Settings,
) -> None:
    with pytest.raises(NoSuchRun, match="the store"):
        await run_events(settings, "local", "run_ghost", None)
    with pytest.raises(NoSuchRun, match="session ses_ghost"):
        await run_events(settings, "local", "run_ghost", "ses_ghost")
