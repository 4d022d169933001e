"""Priorities land on the trace that they are of, among others of nearly the same name."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from pml.clickhouse.client import Store
from pml.clickhouse.migrate import migrate
from pml.clickhouse.query import run_query
from pml.clickhouse.training.reading import read_arrays
from pml.clickhouse.training.selection import Selection
from pml.clickhouse.training.trace_priorities import TraceNames, write_priorities
from tests.clickhouse import history as h
from tests.clickhouse.history import History

pytestmark = pytest.mark.integration
# The same run id in two sessions, two lives of one session, and another tenant.
NAMES = (("ses_1", 100, "local"), ("ses_2", 200, "local"), ("ses_1", 300, "local"), ("ses_1", 400, "bob"))


@pytest.fixture
def store(empty_store: Store) -> Store:
    migrate(empty_store)
    for partition, (session_id, epoch, tenant) in enumerate(NAMES):
        for run_id in ("run_1", "run_11"):
            session = History(session_id, partition, epoch + 40 * (run_id == "run_11"), epoch, tenant)
            _run(session, run_id)
            session.insert(empty_store)
    return empty_store


def _run(session: History, run_id: str) -> None:
    session.add(h.run_started(tasks=1, layers=1), run_id)
    session.add(h.completed("n1"), run_id)
    session.add(h.run_completed(), run_id)


def test_each_trace_has_the_priority_that_was_written_for_it_last(store: Store) -> None:
    columns = read_arrays(store, Selection())
    names = TraceNames.of(columns)
    assert len(names) == 2 * len(NAMES)
    first = np.linspace(0.1, 0.9, len(names))
    for priorities, day in ((first[::-1], 1), (first, 2)):
        assert write_priorities(store, names, priorities, datetime(2026, 11, day, tzinfo=UTC)) == len(names)
    rows = store.query("SELECT tenant, session_id, epoch, run_id, priority FROM traces").rows
    wanted = {
        (tenant, session_id.decode(), int(epoch), run_id.decode()): priority
        for tenant, session_id, epoch, run_id, priority in zip(
            names.tenant, names.session_id, names.epoch, names.run_id, first, strict=True
        )
    }
    assert {(row[0], row[1], int(row[2]), row[3]): row[4] for row in rows} == wanted
    listed = run_query(store, "priorities").as_dicts()
    assert [row["priority"] for row in listed] == sorted(first.tolist(), reverse=True)
    assert listed[0]["path"] == "git:git_log"
