"""Where a partition begins of which the store has dropped what is too old."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pml.clickhouse.client import Store
from pml.clickhouse.expiry import oldest_after_expired
from pml.clickhouse.rows import EVENTS_TABLE
from tests.clickhouse import history as h
from tests.clickhouse.history import History

pytestmark = pytest.mark.integration

KEPT, PARTITION = timedelta(days=400), 3


def store_runs(store: Store, monkeypatch: pytest.MonkeyPatch, age: timedelta, *offsets: int) -> None:
    """A session whose run began and ended at these offsets, so long ago."""
    monkeypatch.setattr(h, "START", datetime.now(UTC) - age)
    session = History(f"ses_{offsets[0]}", PARTITION, offsets[0], offsets[0])
    for offset, data in zip(offsets, (h.run_started(), h.run_completed()), strict=False):
        session.offset = offset
        session.add(data)
    session.insert(store)


def lose(store: Store, where: str) -> None:
    store.command(f"ALTER TABLE {EVENTS_TABLE} DELETE WHERE {where}", settings={"mutations_sync": 2})


def test_a_partition_begins_behind_the_last_run_that_has_expired(
    migrated_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its month was dropped; a run of the next month stands before its end."""
    older, younger = KEPT + timedelta(hours=2), KEPT - timedelta(hours=2)
    store_runs(migrated_store, monkeypatch, older, 10, 12)
    store_runs(migrated_store, monkeypatch, younger, 11, 13)
    store_runs(migrated_store, monkeypatch, younger, 14)
    lose(migrated_store, "session_id = 'ses_10'")
    assert oldest_after_expired(migrated_store, PARTITION) == 13


def test_what_was_lost_before_its_time_says_nothing_of_where_a_partition_begins(
    migrated_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_runs(migrated_store, monkeypatch, KEPT + timedelta(hours=2), 10, 11)
    store_runs(migrated_store, monkeypatch, timedelta(days=1), 12, 13)
    lose(migrated_store, "session_id = 'ses_10' OR log_offset = 13")
    forged = "14 AS log_offset, occurred_at - INTERVAL 500 DAY AS occurred_at"
    migrated_store.command(f"INSERT INTO runs_raw SELECT * REPLACE ({forged}) FROM runs_raw")
    assert oldest_after_expired(migrated_store, PARTITION) == 12
