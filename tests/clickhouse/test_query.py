from __future__ import annotations

from typing import Any

import pytest

from pml.clickhouse.client import Limits, Store
from pml.clickhouse.query import named_queries, run_query
from pml.clickhouse.rows import THRESHOLD_COLUMNS, THRESHOLDS_TABLE
from pml.clickhouse.training.trace_priorities import COLUMNS as PRIORITY_COLUMNS
from pml.schemas.errors import QueryError
from pml.schemas.events import DecisionRequired, EventData
from tests.clickhouse import history as h
from tests.clickhouse.history import History

pytestmark = pytest.mark.integration


@pytest.fixture
def store(migrated_store: Store) -> Store:
    """Two runs of `notes`, one of them failed, with hits, misses, repeats and waste; stored twice."""
    first = History()
    first.add(h.run_started(capability_id="cap_1"))
    first.add(h.completed("n1", tool_ms=10.0, duration_ms=11.0))
    first.add(h.speculation("n2", "served", "hit", saved_ms=80.0))
    first.add(h.completed("n2", served_by="speculation", speculable=True, tool_ms=90.0, duration_ms=1.0))
    first.add(h.completed("n3", served_by="repeat", speculable=True, tool_ms=90.0, duration_ms=1.0))
    first.add(h.speculation("n4", "served", "joined", tool="files:read_file", saved_ms=20.0))
    first.add(h.speculation("n5", "discarded", "unused", tool_ms=500.0))
    first.add(h.failed("n6", speculable=True, final=False, retry_at="2026-11-22T00:00:00.000000Z"))
    first.add(h.completed("n6", attempt=2, speculable=True, tool_ms=50.0))
    first.add(h.completed("n7", tool="files:write_file", layer=2, tool_ms=1.0))
    first.add(h.run_completed(hits=2, misses=1, wasted=1, saved_ms=100.0))
    first.add(h.run_scored("quality", number=4))
    second = History(session_id="ses_2", offset=500, epoch=500)
    second.add(h.run_started(capability_id="cap_1"), run_id="run_2")
    second.add(h.failed("n1", duration_ms=30.0), run_id="run_2")
    second.add(h.completed("n2", tool="notes:add", layer=3, tool_ms=1.0), run_id="run_2")
    second.add(h.skipped("n3"), run_id="run_2")
    second.add(h.run_failed(), run_id="run_2")
    for token in ("once", "twice"):
        first.insert(migrated_store, f"a-{token}")
        second.insert(migrated_store, f"b-{token}")
        migrated_store.insert(THRESHOLDS_TABLE, THRESHOLD_COLUMNS, h.thresholds(), token=f"c-{token}")
    priority = ("local", "ses_1", 100, "run_1", 0.9, h.START)
    migrated_store.insert("trace_priorities", PRIORITY_COLUMNS, [priority])
    return migrated_store


def test_every_query_says_what_it_does_and_runs(store: Store) -> None:
    queries = named_queries()
    assert set(queries) == {
        "capabilities",
        "failure_points",
        "hit_rate_by_tool_and_hour",
        "latency_saved",
        "priorities",
        "scores",
        "slowest_tools",
        "threshold_history",
        "threshold_states",
        "tool_pairs",
        "waste",
    }
    for query in queries.values():
        assert len(query.description) > len(query.title) > 20
        assert run_query(store, query.name).rows


def test_every_query_runs_on_an_migrated_store(migrated_store: Store) -> None:
    for name in named_queries():
        assert run_query(migrated_store, name).rows == []


def test_hits_and_misses_are_those_of_the_accounts(store: Store) -> None:
    rows = run_query(store, "hit_rate_by_tool_and_hour").as_dicts()
    told = {row["tool"]: (row["hits"], row["misses"], row["hit_rate"], row["saved_ms"]) for row in rows}
    assert told == {"git:git_log": (1, 1, 0.5, 80.0), "files:read_file": (1, 0, 1.0, 20.0)}
    assert rows[0]["hour"] == h.START.replace(minute=0, second=0, microsecond=0).isoformat().replace(
        "+00:00", "Z"
    )


def test_waste_is_what_nobody_used(store: Store) -> None:
    (row,) = run_query(store, "waste").as_dicts()
    assert row == {
        "tool": "git:git_log",
        "fate": "discarded",
        "reason": "unused",
        "wasted": 1,
        "tool_s": 0.5,
        "share": 0.5,
    }


def test_capabilities_are_told_with_their_success_and_paths(store: Store) -> None:
    (row,) = run_query(store, "capabilities").as_dicts()
    assert (row["capability_id"], row["runs"], row["success_rate"], row["paths"]) == ("cap_1", 2, 0.5, 2)
    assert (row["median_ms"], row["median_saved_ms"]) == (800.0, 50.0)


def test_slowest_tools_count_each_call_once(store: Store) -> None:
    row, *others = run_query(store, "slowest-tools").as_dicts()
    assert {other["tool"] for other in others} == {"files:write_file", "notes:add"}
    assert (row["tool"], row["calls"], row["not_completed"]) == ("git:git_log", 5, 2)
    assert (row["p50_ms"], row["max_ms"]) == (50.0, 120.5)
    assert row["tool_s"] == round((10 + 90 + 120.5 + 50 + 30) / 1000, 3)


def test_pairs_of_tools_are_told_with_order_and_success(store: Store) -> None:
    rows = run_query(store, "tool_pairs").as_dicts()
    assert [tuple(row.values()) for row in rows] == [
        ("files:write_file", "git:git_log", 1, 1.0, 1.0, 0.0),
        ("git:git_log", "notes:add", 1, 1.0, 0.0, 1.0),
    ]


def test_failure_points_name_workflow_task_and_error(store: Store) -> None:
    (row,) = run_query(store, "failure_points").as_dicts()
    assert (row["workflow"], row["task_id"], row["tool"], row["status"]) == (
        "notes",
        "n1",
        "git:git_log",
        "failed",
    )
    assert (row["error_type"], row["error_code"], row["failed_runs"], row["share"]) == (
        "NOT_FOUND",
        "TOOL_ERROR",
        1,
        0.5,
    )
    assert row["last_message"] == "no such file"


def _settled_late(store: Store, *ends: EventData) -> None:
    """A third run, whose write timed out, and what came of it."""
    third = History(session_id="ses_3", offset=900, epoch=900)
    third.add(h.run_started(), run_id="run_3")
    third.add(h.unknown("n8", tool="files:append", duration_ms=70.0), run_id="run_3")
    for data in ends:
        third.add(data, run_id="run_3")
    third.insert(store)


def test_a_call_that_was_answered_late_is_one_call_and_no_failure(store: Store) -> None:
    _settled_late(store, h.resolved("n8", tool="files:append"), h.run_completed(tasks=1, completed=1))
    found = {row["tool"]: row for row in run_query(store, "slowest_tools").as_dicts()}
    row = found["files:append"]
    assert (row["calls"], row["not_completed"], row["p50_ms"], row["max_ms"]) == (1, 0, 70.0, 70.0)
    assert (row["tool_s"], row["waited_ms"]) == (0.07, 70.0)
    assert [row["task_id"] for row in run_query(store, "failure_points").as_dicts()] == ["n1"]


@pytest.mark.parametrize(
    ("end", "status"), [(None, "unknown"), ({"resolution": "not_done", "result": None}, "failed")]
)
def test_a_run_that_failed_at_an_unknown_task_is_listed(
    store: Store, end: dict[str, Any] | None, status: str
) -> None:
    resolved = [h.resolved("n8", tool="files:append", **end)] if end else []
    _settled_late(store, h.run_failed(), *resolved)
    listed = {row["task_id"]: row for row in run_query(store, "failure_points").as_dicts()}
    assert set(listed) == {"n1", "n8"}
    assert (listed["n8"]["status"], listed["n8"]["failed_runs"]) == (status, 1)


def test_a_task_that_completed_when_it_was_retried_is_no_failure(store: Store) -> None:
    retried = h.resolved("n8", tool="files:append", resolution="retry", result=None)
    again = h.completed("n8", attempt=2, tool="files:append", tool_ms=5.0)
    _settled_late(store, retried, again, h.run_completed(tasks=1, completed=1))
    assert [row["task_id"] for row in run_query(store, "failure_points").as_dicts()] == ["n1"]
    found = {row["tool"]: row for row in run_query(store, "slowest_tools").as_dicts()}
    assert (found["files:append"]["calls"], found["files:append"]["not_completed"]) == (2, 1)


def test_a_miss_that_was_settled_is_one(store: Store) -> None:
    _settled_late(store, h.unknown("n9", tool="files:append", speculable=True), h.resolved("n9"))
    rows = run_query(store, "hit_rate_by_tool_and_hour").as_dicts()
    assert [row["misses"] for row in rows if row["tool"] == "files:append"] == [1]


def test_latency_saved_is_by_workflow(store: Store) -> None:
    (row,) = run_query(store, "latency_saved").as_dicts()
    assert (row["workflow"], row["ended_runs"], row["all_hits"], row["all_misses"]) == ("notes", 2, 2, 1)
    assert (row["all_saved_ms"], row["saved_ms_per_run"], row["mean_run_ms"]) == (100.0, 50.0, 800.0)


def test_a_run_that_waits_for_somebody_has_not_ended(store: Store) -> None:
    waiting = History(session_id="ses_3", offset=900, epoch=900)
    waiting.add(h.run_started(), run_id="run_3")
    asked = DecisionRequired(checkpoint_id="k1", following=1, deadline_at=h.time_of(h.START))
    waiting.add(asked, run_id="run_3")
    waiting.insert(store, "waiting")
    (row,) = run_query(store, "latency_saved").as_dicts()
    assert (row["ended_runs"], row["mean_run_ms"]) == (2, 800.0)


def test_states_of_thresholds_say_how_many_outcomes_it_took(store: Store) -> None:
    (row,) = run_query(store, "threshold_states").as_dicts()
    assert (row["context_key"], row["threshold"], row["success_rate"]) == ("local/default", 0.87, 0.86)
    assert (row["state_now"], row["all_outcomes"], row["outcomes_to_converge"]) == ("converged", 250, 200)
    rows = run_query(store, "threshold_history").as_dicts()
    assert [(row["outcomes_so_far"], row["state"]) for row in rows[:2]] == [
        (0, ""),
        (250, "converged"),
    ]
    assert (rows[0]["after"], rows[0]["why"]) == (0.8, "set by ada")


def test_sql_runs_as_it_is(store: Store) -> None:
    assert run_query(store, " SELECT count() FROM events ; ").rows == [[17]]
    assert run_query(store, "SELECT {n:UInt8} + 1 -- three", {"n": 2}).rows == [[3]]


def test_a_name_that_does_not_exist_lists_those_that_do(store: Store) -> None:
    with pytest.raises(QueryError, match="slowest_tools"):
        run_query(store, "slowest")


def test_limits_hold(store: Store) -> None:
    with pytest.raises(QueryError, match="add a LIMIT"):
        run_query(store, "SELECT * FROM events", limits=Limits(rows=3))
    with pytest.raises(QueryError, match="Only statements that read"):
        run_query(store, "TRUNCATE TABLE events_raw")
    assert run_query(store, "SELECT count() FROM events").rows == [[17]]


def test_no_digit_of_a_number_is_lost(migrated_store: Store) -> None:
    most, least = str(2**128 - 1), str(-(2**255))
    sql = f"""SELECT toUInt128('{most}') AS a, [(1, toInt256('{least}'))] AS b, {2**64 - 1} AS c, 7 AS d,
        toDecimal128('1.23456789012345678901', 20) AS e, toUInt128(5) AS f"""
    (row,) = run_query(migrated_store, sql).rows
    assert row == [most, [["1", least]], 2**64 - 1, 7, "1.23456789012345678901", "5"]


def test_half_of_a_character_is_refused(migrated_store: Store) -> None:
    with pytest.raises(QueryError, match="half of a character"):
        run_query(migrated_store, "SELECT '\ud800'")
    with pytest.raises(QueryError, match="half of a character"):
        run_query(migrated_store, "SELECT {text:String}", {"text": "\ud800"})
