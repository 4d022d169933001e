"""Runs page by page: every run once, the newest first, whatever the size of a page."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.clickhouse.client import Store
from pml.schemas.errors import UndecodableRecord
from pml.schemas.events import Event
from pml.streams import run_listing
from pml.streams.run_listing import Cursor, RunPage, cursor_of, list_runs
from pml.streams.settings import Settings
from tests.clickhouse import history as h
from tests.clickhouse.history import History
from tests.log_writer import run_started
from tests.streams.gateway.session_log import events, refused


@pytest.fixture
def settings(migrated_store: Store, clickhouse_url: str, tmp_path: Path) -> Settings:
    for number in range(7):
        # Pairs begin at the same moment, some of them under the same id in another session.
        session = History(session_id=f"ses_{number}", offset=100 * number, epoch=100 * number)
        session.add(h.run_started(), run_id=f"run_{number // 3}")
        session.events[0]["occurred_at"] = h.time_of(h.START + timedelta(seconds=number // 2))
        session.insert(migrated_store, f"token-{number}")
    store = {"url": clickhouse_url, "database": migrated_store.address.database}
    return Settings.load(data_dir=tmp_path, clickhouse=store)


async def pages(settings: Settings, limit: int) -> list[RunPage]:
    found = [await list_runs(settings, "local", None, None, limit)]
    while (cursor := found[-1].next_cursor) is not None:
        found.append(await list_runs(settings, "local", None, None, limit, cursor=cursor))
    return found


@pytest.mark.integration
async def test_pages_of_any_size_are_the_whole_list(settings: Settings) -> None:
    whole = await list_runs(settings, "local", None, None, 100)
    assert (len(whole.rows), whole.next_cursor) == (7, None)
    starts = [row["started_at"] for row in whole.rows]
    assert starts == sorted(starts, reverse=True)
    for limit in (1, 2, 3, 6, 7):
        found = await pages(settings, limit)
        assert [row for page in found for row in page.rows] == whole.rows
        assert [len(page.rows) for page in found[:-1]] == [limit] * (len(found) - 1)


@given(st.text(), st.text(), st.integers(0, 2**63 - 1))
def test_a_cursor_is_read_as_it_was_given(run_id: str, session_id: str, epoch: int) -> None:
    cursor = Cursor("2026-11-22T10:00:00.000001Z", run_id, session_id, epoch)
    assert cursor_of(str(cursor)) == cursor


@given(st.text())
def test_no_text_is_worse_than_refused(junk: str) -> None:
    with suppress(UndecodableRecord):
        assert str(cursor_of(junk)).rstrip("=")


@pytest.mark.parametrize("text", ["", "x", "bm9uc2Vuc2U", "W10", "WyJ4IiwgIngiLCAieCIsIDFd", "é"])
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(UndecodableRecord, match="begin without one"):
        cursor_of(text)


async def test_a_run_that_began_after_a_refusal_is_listed_from_its_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def session_events(*args: Any) -> list[Event]:
        return [*events((4, refused()), (9, run_started())), *events((9, refused()), run_id="run_2")]

    monkeypatch.setattr(run_listing, "session_events", session_events)
    found = await list_runs(Settings(data_dir=tmp_path), "local", "s", None, 10)
    assert [(row["run_id"], row["status"]) for row in found.rows] == [("run_1", "running")]
    assert [cursor.epoch for cursor in found.cursors] == [9]
