"""The tables that ClickHouse derives, compared by the real engine with what its views make of the events."""

from __future__ import annotations

from collections.abc import Iterator

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


def test_rows_that_were_inserted_twice_are_the_same(store: Store) -> None:
    store.insert(EVENTS_TABLE, EVENT_COLUMNS, rows_of(events(*TYPES)))
    assert (compared(store).verdict, compared(store).compared) == ("same", ROWS)


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


def test_what_the_sink_has_not_committed_is_not_compared(store: Store) -> None:
    change(store, f"ALTER TABLE runs_raw DELETE WHERE log_offset = {FIRST + 3}")
    assert compared(store, committed=FIRST + 3).verdict == "same"
    assert compared(store).differences == 1
