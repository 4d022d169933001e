"""The stored events by their place in the log: once each, and no more is read than is asked for."""

from __future__ import annotations

from typing import Any

import pytest

from pml.clickhouse.client import Limits, Store
from pml.clickhouse.replay import stored_page, stored_rows
from pml.clickhouse.rows import EVENT_COLUMNS
from tests.clickhouse import history as h
from tests.clickhouse.history import History

pytestmark = pytest.mark.integration

DATA, OFFSET = EVENT_COLUMNS.index("data"), EVENT_COLUMNS.index("log_offset")


@pytest.fixture
def store(migrated_store: Store) -> Store:
    return migrated_store


def test_an_event_that_was_stored_twice_is_read_once(store: Store) -> None:
    session, other = History(), History("ses_2", offset=200)
    for each in (session, other):
        each.add(h.run_started())
        each.add(h.run_completed())
        each.insert(store)
        each.insert(store)
    assert stored_rows(store, 3, 101, 200) == [session.rows()[1], other.rows()[0]]
    assert stored_rows(store, 3, 0, 300, ("local", "ses_2")) == other.rows()
    assert stored_page(store, 3, 100, 2) == [session.rows()[1], other.rows()[0]]
    assert stored_page(store, 3, -1, 2) == session.rows()
    assert stored_page(store, 3, 200, 2) == other.rows()[1:]
    assert (stored_page(store, 3, 201, 2), stored_page(store, 4, -1, 2)) == ([], [])


def test_the_data_of_other_offsets_stays_unread(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    events, data_bytes = 20_000, 4_000
    store.command(
        f"""INSERT INTO events_raw (partition, log_offset, tenant, session_id, occurred_at, data)
        SELECT 3, number, 'local', concat('ses_', leftPad(toString(intDiv(number, 20)), 6, '0')),
            now64(6, 'UTC'), hex(randomString({data_bytes // 2}))
        FROM numbers({events})"""
    )
    settings = Limits.settings

    def narrow(limits: Limits) -> dict[str, Any]:
        return {**settings(limits), "max_bytes_to_read": events * data_bytes // 3}

    monkeypatch.setattr(Limits, "settings", narrow)
    rows = stored_rows(store, 3, 5_000, 5_099)
    assert [row[OFFSET] for row in rows] == [*range(5_000, 5_100)]
    assert {len(row[DATA]) for row in rows} == {data_bytes}
    page = stored_page(store, 3, 4_999, 100)
    assert page == rows
