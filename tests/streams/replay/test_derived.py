"""The tables that ClickHouse derives, compared by the real engine with what its views make of the events."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from pml.clickhouse.client import Store
from pml.clickhouse.derived import derived_tables
from pml.clickhouse.migrate import migrate
from pml.clickhouse.rows import EVENT_COLUMNS, EVENTS_TABLE
from pml.streams.replay import derived
from pml.streams.replay.derived import DerivedReplay
from pml.streams.replay.report import Comparison
from tests.clickhouse import history as h
from tests.clickhouse.history import History
from tests.fixtures.patience import PATIENCE_S
from tests.log_writer import speculation_ended
from tests.streams.replay.test_comparison import FIRST, PARTITION, RUN, SESSION, events, rows_of

pytestmark = pytest.mark.integration

TYPES = (*RUN, speculation_ended())
LAST = FIRST + len(TYPES) - 1
# Of them 2 are rows of runs, 1 of tasks, 1 of speculations, 2 of episodes.
ROWS = 6


@pytest.fixture
def store(clickhouse_url: str, database: str) -> Iterator[Store]:
    with Store.connect(clickhouse_url, database, answer_timeout_s=PATIENCE_S) as store:
        migrate(store)
        store.command("ALTER TABLE episodes_raw MODIFY TTL toDateTime(timestamp) + INTERVAL 10000 DAY")
        store.insert(EVENTS_TABLE, EVENT_COLUMNS, rows_of(events(*TYPES)))
        yield store
        store.command(f"DROP DATABASE {database} SYNC", use_database=False)


def compared(
    store: Store,
    first: int = 0,
    last: int = LAST,
    committed: int = LAST + 1,
    session: tuple[str, str] | None = None,
) -> Comparison:
    replay = DerivedReplay(store, derived_tables(store), {PARTITION: committed}, session)
    replay.finish({PARTITION: (first, last)})
    return replay.comparison


def test_an_attempt_that_was_settled_is_compared_by_each_of_its_ends(store: Store) -> None:
    """Readers see it as one row (`tasks`); what is stored is what each event makes."""
    session = History("ses_2", PARTITION, LAST + 1, LAST + 1)
    for data in (h.run_started(), h.unknown("n1"), h.resolved("n1"), h.run_completed(completed=1)):
        session.add(data)
    session.insert(store)
    found = compared(store, first=LAST + 1, last=LAST + 4, committed=LAST + 5)
    # Of runs, tasks and episodes 2 each.
    assert (found.verdict, found.compared, found.differences) == ("same", 6, 0)
    assert store.query("SELECT status FROM tasks WHERE session_id = 'ses_2'").rows == [["completed"]]


def change(store: Store, sql: str) -> None:
    store.command(sql, settings={"mutations_sync": 2})


@pytest.mark.parametrize("window", [1, 2, 50_000])
def test_rows_are_as_their_views_make_them(
    store: Store, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(derived, "WINDOW_OFFSETS", window)
    found = compared(store)
    assert (found.verdict, found.compared, found.differences) == ("same", ROWS, 0)


def store_again(store: Store) -> None:
    """As a sink does that reads the log again and cuts other batches; the copies are not merged."""
    for table in (EVENTS_TABLE, *derived_tables(store)):
        store.command(f"SYSTEM STOP MERGES {store.address.database}.{table}")
    rows = rows_of(events(*TYPES))
    store.insert(EVENTS_TABLE, EVENT_COLUMNS, rows[:2], token="first")
    store.insert(EVENTS_TABLE, EVENT_COLUMNS, rows[2:], token="second")
    assert store.query(f"SELECT count() FROM {EVENTS_TABLE}").rows == [[2 * len(TYPES)]]
    assert store.query("SELECT count() FROM runs_raw").rows == [[4]]


def test_rows_that_were_inserted_twice_are_the_same(store: Store) -> None:
    store_again(store)
    found = compared(store)
    assert (found.verdict, found.compared, found.differences) == ("same", ROWS, 0)


def test_copies_of_an_event_hide_no_row_of_another_tenant(store: Store) -> None:
    store_again(store)
    store.command("INSERT INTO runs_raw SELECT * REPLACE ('other' AS tenant) FROM runs_raw FINAL")
    found = compared(store)
    assert found.first is not None
    assert (found.differences, found.first.key) == (2, "runs_raw")
    assert found.first.found == "a row that no event makes"


def test_a_value_that_was_altered_is_named(store: Store) -> None:
    change(store, "ALTER TABLE tasks_raw UPDATE duration_ms = 77777 WHERE 1")
    found = compared(store)
    assert found.first is not None
    assert (found.differences, found.first.offset, found.first.key) == (1, FIRST + 2, "tasks_raw")
    assert (found.first.field, float(found.first.found)) == ("duration_ms", 77777)
    assert compared(store, last=FIRST + 1).verdict == "same"
    assert compared(store, first=FIRST + 3).verdict == "same"
    assert compared(store, session=("local", SESSION)).verdict == "different"
    assert compared(store, session=("local", "another")).verdict == "not compared"


def test_rows_that_are_missing_are_counted(store: Store) -> None:
    change(store, "ALTER TABLE runs_raw DELETE WHERE 1")
    found = compared(store)
    assert found.first is not None
    assert (found.differences, found.first.key, found.first.field) == (2, "runs_raw", "row")
    assert (found.first.expected, found.first.found) == ("a row", "none")


def test_a_row_that_no_event_makes_is_named(store: Store) -> None:
    change(store, f"ALTER TABLE {EVENTS_TABLE} DELETE WHERE type = 'speculation.ended'")
    found = compared(store)
    assert found.first is not None
    assert found.first.key in {"episodes_raw", "speculations_raw"}
    assert (found.differences, found.first.found) == (2, "a row that no event makes")


def test_rows_that_outlive_their_events_are_no_difference(store: Store) -> None:
    change(store, f"ALTER TABLE {EVENTS_TABLE} DELETE WHERE log_offset < {FIRST + 3}")
    assert compared(store).verdict == "same"


def test_rows_that_expire_before_their_events_are_no_difference(store: Store) -> None:
    store.command("ALTER TABLE episodes_raw MODIFY TTL toDateTime(timestamp) + INTERVAL 1 SECOND")
    change(store, "ALTER TABLE episodes_raw DELETE WHERE 1")
    assert (compared(store).verdict, compared(store).compared) == ("same", ROWS - 2)


def test_rows_that_wait_to_be_dropped_are_no_difference(store: Store) -> None:
    """A whole day is dropped at once: what is older than the view looks back is there for some hours more."""
    store.command("ALTER TABLE episodes_raw MODIFY TTL toDateTime(timestamp) + INTERVAL 90 DAY")
    store.command(f"SYSTEM STOP TTL MERGES {store.address.database}.episodes_raw")
    old = "now64(6, 'UTC') - INTERVAL 90 DAY - INTERVAL 1 HOUR"
    store.command(f"INSERT INTO episodes_raw SELECT * REPLACE ({old} AS timestamp) FROM episodes_raw")
    assert store.query("SELECT count() FROM episodes_raw").rows == [[4]]
    assert (compared(store).verdict, compared(store).compared) == ("same", ROWS)


def store_old_and_young(store: Store, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """An older session's events stand behind the first of a younger one; the older ones have expired."""
    kept = datetime.now(UTC) - timedelta(days=400)
    old, young = History("ses_old", PARTITION + 1, 0, 0), History("ses_young", PARTITION + 1, 1, 1)
    monkeypatch.setattr(h, "START", kept - timedelta(hours=2))
    for offset, data in ((0, h.run_started()), (2, h.completed("n1")), (3, h.run_completed())):
        old.offset = offset
        old.add(data)
    monkeypatch.setattr(h, "START", kept + timedelta(hours=2))
    for offset, data in ((1, h.run_started()), (4, h.completed("n1")), (5, h.run_completed())):
        young.offset = offset
        young.add(data)
    old.insert(store)
    young.insert(store)
    change(store, f"ALTER TABLE {EVENTS_TABLE} DELETE WHERE session_id = 'ses_old'")
    return 0, 5


def compared_beside(store: Store, span: tuple[int, int]) -> Comparison:
    replay = DerivedReplay(store, derived_tables(store), {PARTITION + 1: span[1] + 1})
    replay.finish({PARTITION + 1: span})
    return replay.comparison


def test_events_that_expired_behind_younger_ones_are_no_difference(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    span = store_old_and_young(store, monkeypatch)
    found = compared_beside(store, span)
    assert (found.verdict, found.compared) == ("same", 3)
    change(store, f"ALTER TABLE {EVENTS_TABLE} DELETE WHERE session_id = 'ses_young' AND log_offset = 5")
    found = compared_beside(store, span)
    assert found.first is not None
    assert (found.differences, found.first.offset) == (1, 5)


def test_a_row_that_names_an_old_time_among_younger_events_is_named(store: Store) -> None:
    forged = "'other' AS tenant, occurred_at - INTERVAL 500 DAY AS occurred_at"
    store.command(f"INSERT INTO runs_raw SELECT * REPLACE ({forged}) FROM runs_raw")
    found = compared(store)
    assert found.first is not None
    assert (found.differences, found.first.found) == (2, "a row that no event makes")


def test_what_the_sink_has_not_committed_is_not_compared(store: Store) -> None:
    change(store, f"ALTER TABLE runs_raw DELETE WHERE log_offset = {FIRST + 3}")
    assert compared(store, committed=FIRST + 3).verdict == "same"
    assert compared(store).differences == 1
