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
from pml.schemas.errors import Refused
from pml.schemas.events import Event, EventData
from pml.streams.client import new_id
from pml.streams.connection import partition_for
from pml.streams.run_history import NoSuchRun, begun, run_events
from pml.streams.settings import Settings
from pml.streams.topics import ensure_topics
from tests.fixtures.patience import PATIENCE_S
from tests.log_writer import LogWriter, run_completed, run_started, task_completed, task_started
from tests.streams.gateway.session_log import events, refused

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


@pytest.mark.integration
async def test_a_run_that_the_store_does_not_have_yet_is_read_from_the_log(settings: Settings) -> None:
    run_id = new_id("run")
    async with LogWriter(settings) as log:
        written = await log.write(run_id, *RUN, run_id=run_id)
    assert await run_events(settings, "local", run_id, None) == written


@pytest.mark.integration
async def test_a_run_whose_end_the_store_does_not_have_yet_is_read_from_the_log(settings: Settings) -> None:
    run_id, session_id = new_id("run"), new_id("ses")
    async with LogWriter(settings) as log:
        written = await log.write(session_id, *RUN, run_id=run_id)
    keep(settings, written[:2])
    assert await run_events(settings, "local", run_id, None) == written


@pytest.mark.integration
async def test_a_run_that_ended_is_read_from_the_store_alone(settings: Settings) -> None:
    run_id = new_id("run")
    async with LogWriter(settings) as log:
        written = await log.write(run_id, *RUN, run_id=run_id)
    keep(settings, [written[0], written[-1]])
    assert await run_events(settings, "local", run_id, None) == [written[0], written[-1]]


@pytest.mark.integration
async def test_a_run_that_nobody_knows_is_an_error_that_says_where_it_was_looked_for(
    settings: Settings,
) -> None:
    with pytest.raises(NoSuchRun, match="the store"):
        await run_events(settings, "local", "run_ghost", None)
    with pytest.raises(NoSuchRun, match="session ses_ghost"):
        await run_events(settings, "local", "run_ghost", "ses_ghost")


@pytest.mark.integration
@pytest.mark.parametrize("stored", [False, True], ids=["log", "store"])
async def test_a_run_whose_start_was_refused_is_told_as_the_refusal(settings: Settings, stored: bool) -> None:
    run_id = new_id("run")
    async with LogWriter(settings) as log:
        written = await log.write(run_id, refused(), run_id=run_id)
    if stored:
        keep(settings, written)
    for session_id in (None, run_id):
        with pytest.raises(Refused, match="this is SESSION_FULL") as raised:
            await run_events(settings, "local", run_id, session_id)
        assert (raised.value.code, raised.value.retryable) == ("SESSION_FULL", True)


@pytest.mark.integration
async def test_a_run_that_began_in_one_session_is_not_hidden_by_its_refusal_in_another(
    settings: Settings,
) -> None:
    run_id, first, second = new_id("run"), new_id("ses"), new_id("ses")
    async with LogWriter(settings) as log:
        rejected = await log.write(first, refused(), run_id=run_id)
        # So that the refusal comes first in the order of the store, whichever partitions these are.
        await log.write(second, run_started(), run_id="run_before")
        written = await log.write(second, *RUN[:2], run_id=run_id)
    keep(settings, rejected)
    keep(settings, written[:1])
    assert await run_events(settings, "local", run_id, None) == written


@pytest.mark.parametrize(
    "told",
    [
        [refused(), *RUN],
        [*RUN, refused("CONFLICT")],
        [RUN[0], refused("NOT_WAITING", "run.continue"), *RUN[1:]],
        [refused("NO_SUCH_RUN", "run.abort"), refused(), RUN[0]],
    ],
)
def test_a_run_that_began_is_one_whatever_was_refused(told: list[EventData]) -> None:
    assert begun(events(*((0, data) for data in told)))


def test_a_run_that_was_never_begun_is_told_as_the_newest_refusal_of_its_start() -> None:
    invalid = refused("UNKNOWN_TOOL", invalid=True)
    with pytest.raises(Refused, match="UNKNOWN_TOOL") as raised:
        begun(events((0, refused()), (0, invalid), (0, refused("NO_SUCH_RUN", "run.abort"))))
    assert (raised.value.code, raised.value.retryable) == ("UNKNOWN_TOOL", False)


def test_what_was_refused_of_a_run_that_nobody_asked_for_begins_none() -> None:
    assert not begun(events((0, refused("NO_SUCH_RUN", "run.abort"))))
    assert not begun([])
