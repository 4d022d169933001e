"""What is compared of the derived tables: no more of them is read than lies in the window."""

from __future__ import annotations

from typing import Any

import pytest

from pml.clickhouse.client import Limits, Store
from pml.clickhouse.derived import Odd, Window, both_rows, derived_tables, missing, surplus
from pml.clickhouse.rows import EVENTS_TABLE

pytestmark = pytest.mark.integration

EVENTS, RESULT_BYTES = 20_000, 4_000
PARTITION, FIRST, LAST = 3, 5_000, 5_099


@pytest.fixture
def store(migrated_store: Store) -> Store:
    """Tasks with large results, sessions one after the other."""
    migrated_store.command(
        f"""INSERT INTO {EVENTS_TABLE} (partition, log_offset, tenant, session_id, type, occurred_at, data)
        SELECT {PARTITION}, number, 'local', concat('ses_', leftPad(toString(intDiv(number, 20)), 6, '0')),
            'task.completed', now64(6, 'UTC'),
            concat('{{"result":"', hex(randomString({RESULT_BYTES // 2})), '"}}')
        FROM numbers({EVENTS})"""
    )
    return migrated_store


def test_where_a_row_lies_is_said_by_the_sorting_key_of_every_table(migrated_store: Store) -> None:
    """FINAL picks among what PREWHERE leaves: it must leave all versions of a row, or none."""
    sql = "SELECT sorting_key FROM system.tables WHERE database = currentDatabase() AND name = {name:String}"
    tables = derived_tables(migrated_store)
    assert len(tables) >= 5
    for name in tables:
        ((key,),) = migrated_store.query(sql, {"name": name}).rows
        assert {"partition", "log_offset"} <= set(key.split(", ")), name


@pytest.mark.parametrize("session", [None, ("local", "ses_000251")])
def test_the_values_of_rows_outside_the_window_stay_unread(
    session: tuple[str, str] | None, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    views = derived_tables(store)["tasks_raw"]
    view = next(each for each in views if each.name == "tasks_from_events")
    window, settings = Window(PARTITION, FIRST, LAST, session), Limits.settings
    # Both sides are read: the events in the window, and the rows that came of them.
    most = 2 * EVENTS * RESULT_BYTES // 3

    def narrow(limits: Limits) -> dict[str, Any]:
        return {**settings(limits), "max_bytes_to_read": most}

    monkeypatch.setattr(Limits, "settings", narrow)
    assert missing(store, view, window) == (20 if session else 100, Odd(0, 0))
    assert surplus(store, views, window) == Odd(0, 0)
    expected, found = both_rows(store, view, PARTITION, FIRST)
    assert expected == found
    assert expected is not None
    assert len(expected["result"]) == RESULT_BYTES + 2
