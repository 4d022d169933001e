"""Runs page by page: every run once, the newest first, whatever the size of a page."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.clickhouse.client import Store
from pml.schemas.errors import UndecodableRecord
from pml.streams.run_listing import Cursor, RunPage, cursor_of, list_runs
from pml.streams.settings import Settings
from tests.clickhouse import history as h
from tests.clickhouse.history import History


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
