"""What the real engine has dropped for its age is no difference; what was lost otherwise is one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pml.clickhouse.client import Store
from pml.clickhouse.expiry import NEVER, expired_before, oldest_after_expired
from pml.clickhouse.migrate import migrate
from pml.clickhouse.rows import EVENT_COLUMNS, EVENTS_TABLE
from pml.processors.speculation.metrics import Totals, encode_totals
from pml.schemas.codec import encode
from pml.schemas.events import Event
from pml.schemas.identifiers import event_id
from pml.schemas.times import to_rfc3339
from pml.streams.replay.parts import Live, Part, folds_of, replay_part
from pml.streams.replay.play import ReplayReport, replay
from pml.streams.replay.report import Comparison
from pml.streams.replay.selection import CLICKHOUSE, Selection
from pml.streams.replay.sources import read_file, unheard
from pml.streams.settings import Settings
from tests.streams.replay.test_comparison import FIRST, PARTITION, RUN, events, rows_of

pytestmark = pytest.mark.integration


NOW_MS = int((datetime.now(UTC) - timedelta(hours=1)).timestamp() * 1_000)
OLD_MS, EXPIRED = NOW_MS - 401 * 86_400_000, FIRST + 2
SECOND = FIRST + len(RUN)
LAST = SECOND + len(RUN) - 1
LIVE = Live(metrics={PARTITION: encode_totals(Totals(), LAST)}, committed={PARTITION: LAST + 1})


def happened() -> list[Event]:
    """Two lives of a session."""
    return [*map(_at_its_time, [*events(*RUN), *map(_of_second_life, events(*RUN))])]


def _of_second_life(event: Event) -> Event:
    name = event_id(event.tenant, event.session_id, SECOND, event.seq)
    return event.model_copy(update={"id": name, "epoch": SECOND, "offset": SECOND + event.seq})


def _at_its_time(event: Event) -> Event:
    at_ms = OLD_MS if event.offset < EXPIRED else NOW_MS
    return event.model_copy(update={"occurred_at": to_rfc3339(at_ms + event.offset)})


@pytest.fixture
def store(migrated_store: Store) -> Store:
    """It has dropped what is older than its table keeps it."""
    migrated_store.insert(EVENTS_TABLE, EVENT_COLUMNS, rows_of(happened()))
    lose(migrated_store, f"log_offset < {EXPIRED}")
    return migrated_store


def lose(store: Store, where: str) -> None:
    store.command(f"ALTER TABLE {EVENTS_TABLE} DELETE WHERE {where}", settings={"mutations_sync": 2})


async def of_lines(store: Store) -> dict[str, Comparison]:
    """What a replay says that reads the whole log, as far as it asks the store."""
    read = read_file([encode(event) for event in happened()])
    return named(await replay(read, folds_of(Selection("log.jsonl", verify=True), LIVE, store)))


async def of_store(store: Store, url: str, folder: Path) -> dict[str, Comparison]:
    """What a replay says that reads the store."""
    settings = Settings.load(data_dir=folder, clickhouse={"url": url, "database": store.address.database})
    part = Part(PARTITION, range(0), 0, LIVE)
    return named(await replay_part(settings, Selection(CLICKHOUSE, verify=True), part, unheard))


def named(report: ReplayReport) -> dict[str, Comparison]:
    return {comparison.projection: comparison for comparison in report.comparisons}


async def test_rows_that_have_expired_are_told_and_one_that_was_lost_differs(store: Store) -> None:
    found = (await of_lines(store))["clickhouse"]
    assert (found.verdict, found.notes) == ("same", ["2 events have expired in the store"])
    lose(store, f"log_offset = {SECOND + 1}")
    found = (await of_lines(store))["clickhouse"]
    assert found.first is not None
    assert (found.differences, found.first.offset) == (1, SECOND + 1)


async def test_of_a_store_whose_first_events_have_expired_the_rest_is_compared(
    store: Store, clickhouse_url: str, tmp_path: Path
) -> None:
    found = await of_store(store, clickhouse_url, tmp_path)
    assert [each.differences for each in found.values()] == [0, 0, 0, 0]
    assert found["sessions"].folded == len(RUN)
    assert found["sessions"].notes[-1].startswith("1 sessions began before the first event that was read")
    assert found["metrics"].notes == [
        "1 partitions are not compared: their first events have expired in the store"
    ]
    lose(store, f"log_offset = {SECOND}")
    found = await of_store(store, clickhouse_url, tmp_path)
    assert found["sessions"].first is not None
    assert (found["sessions"].differences, found["sessions"].first.offset) == (1, SECOND + 1)


async def test_of_a_store_that_lost_its_first_events_before_their_time_the_rest_differs(
    migrated_store: Store, clickhouse_url: str, tmp_path: Path
) -> None:
    """All of them are of now."""
    young = [event.model_copy(update={"occurred_at": to_rfc3339(NOW_MS)}) for event in happened()]
    migrated_store.insert(EVENTS_TABLE, EVENT_COLUMNS, rows_of(young))
    lose(migrated_store, f"log_offset < {EXPIRED}")
    found = await of_store(migrated_store, clickhouse_url, tmp_path)
    assert found["sessions"].first is not None
    assert found["sessions"].first.offset == EXPIRED
    assert found["metrics"].verdict == "different"


def test_a_table_says_how_long_it_keeps_events(empty_store: Store) -> None:
    migrate(empty_store)
    kept = datetime.now(UTC) - expired_before(empty_store)
    assert timedelta(days=399) < kept < timedelta(days=401)
    empty_store.command(f"ALTER TABLE {EVENTS_TABLE} REMOVE TTL")
    assert expired_before(empty_store) == NEVER
    empty_store.insert(EVENTS_TABLE, EVENT_COLUMNS, rows_of(happened()))
    lose(empty_store, f"log_offset < {EXPIRED}")
    assert oldest_after_expired(empty_store, PARTITION) == 0
