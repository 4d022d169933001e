"""Sessions with values: what completed in sessions that somebody named, in order, and of one tenant."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pml.clickhouse.client import Limits, Rows, Store
from pml.clickhouse.training import session_values
from pml.clickhouse.training.played_sessions import read_played_sessions
from pml.clickhouse.training.session_values import LIMITS, VALUE_BYTES_MAX, Stretch, read_session_values
from pml.processors.learning.scene import Past
from pml.schemas.errors import QueryError
from tests.clickhouse import history as h
from tests.clickhouse.history import History

pytestmark = pytest.mark.integration


@pytest.fixture
def store(migrated_store: Store) -> Store:
    return migrated_store


def call(session: History, run_id: str, tool: str = "files:read_file", **fields: object) -> None:
    """A run of one call that completed."""
    told = {"context": {}, **fields}
    session.add(h.run_started(intent=f"do {run_id}", tasks=1, layers=1, **told), run_id)
    session.add(
        h.completed("n1", tool=tool, arguments={"path": run_id}, result={"text": f"of {run_id}"}), run_id
    )
    session.add(h.run_completed(), run_id)


def test_runs_of_a_session_are_its_elements_with_arguments_and_results(store: Store) -> None:
    session = History()
    call(session, "run_1")
    call(session, "run_2", request="the whole story")
    session.add(h.run_started(capability_id="cap_1", context={"repo": "."}), "run_3")
    for task_id in ("n1", "n2"):
        session.add(h.completed(task_id, tool="git:log", result={"id": task_id}), "run_3")
    session.add(h.run_completed(), "run_3")
    session.insert(store)
    (found,) = read_session_values(store, Stretch("local"))
    assert found.elements == (
        Past("files:read_file", {"path": "run_1"}, {"text": "of run_1"}),
        Past("files:read_file", {"path": "run_2"}, {"text": "of run_2"}),
        Past("cap_1", {"repo": "."}, {"n1": {"id": "n1"}, "n2": {"id": "n2"}}),
    )
    assert found.texts == ("", "do run_1", "the whole story")


def test_before_the_first_run_is_visible_what_the_client_said_with_it(store: Store) -> None:
    for number, request in enumerate(("all of it", "do run_1", "")):
        session = History(f"ses_{number}", 0, 1_000 * number, 1_000 * number)
        call(session, "run_1", request=request)
        call(session, "run_2")
        session.insert(store)
    found = read_session_values(store, Stretch("local"))
    assert sorted(each.texts for each in found) == [
        ("", "do run_1"),
        ("", "do run_1"),
        ("all of it", "all of it"),
    ]


def test_it_is_known_when_each_run_ended_and_that_one_without_a_name_was_the_last(store: Store) -> None:
    """By that a session is over, or may go on."""
    session = History()
    call(session, "run_1")
    call(session, "run_2")
    session.add(h.run_started(), "run_3")
    for task_id in ("n1", "n2"):
        session.add(h.completed(task_id, tool="git:log"), "run_3")
    session.add(h.run_completed(), "run_3")
    session.insert(store)
    (found,) = read_session_values(store, Stretch("local"))
    start_ms = int(h.START.timestamp() * 1_000)
    assert len(found.elements) == 2
    assert found.ends_ms == (start_ms + 2_000, start_ms + 5_000)
    assert found.ended_ms == start_ms + 9_000


def test_what_a_client_told_beside_a_call_is_read_with_it(store: Store) -> None:
    session = History()
    call(session, "run_1", context={"customer": 7})
    session.insert(store)
    (found,) = read_session_values(store, Stretch("local"))
    (element,) = found.elements
    assert (element.arguments, element.context) == ({"path": "run_1"}, {"customer": 7})


def test_what_stood_alone_or_is_of_others_is_left_out(store: Store) -> None:
    named, alone, other = History(), History("run_9", 4, 500, 500), History("ses_2", 5, 900, 900, "bob")
    call(named, "run_1")
    call(alone, "run_9")
    call(other, "run_3")
    for session in (named, alone, other):
        session.insert(store)
    (found,) = read_session_values(store, Stretch("local"))
    assert [each.arguments["path"] for each in found.elements] == ["run_1"]
    assert len(read_session_values(store, Stretch("bob"))) == 1
    assert read_session_values(store, Stretch("carl")) == ()


def test_what_failed_has_no_result_and_counts_among_the_tasks_of_its_run(store: Store) -> None:
    session = History()
    session.add(h.run_started(tasks=1, context={}), "run_1")
    session.add(h.failed("n1", tool="git:log", arguments={"path": "a"}), "run_1")
    session.add(h.run_failed(), "run_1")
    session.add(h.run_started(capability_id="cap_1"), "run_2")
    session.add(h.completed("n1", tool="git:log", result={"id": 1}), "run_2")
    session.add(h.failed("n2", tool="git:show"), "run_2")
    session.add(h.run_completed(), "run_2")
    session.insert(store)
    (found,) = read_session_values(store, Stretch("local"))
    assert found.elements == (
        Past("git:log", {"path": "a"}, None),
        Past("cap_1", {"repo": "."}, {"n1": {"id": 1}}),
    )


def test_the_latest_runs_are_read_and_no_value_that_is_too_large(store: Store) -> None:
    session = History()
    session.add(h.run_started(tasks=1), "run_0")
    session.add(h.completed("n1", tool="git:log", result={"text": "x" * VALUE_BYTES_MAX}), "run_0")
    session.add(h.run_completed(), "run_0")
    for number in (1, 2):
        call(session, f"run_{number}")
    session.insert(store)
    (found,) = read_session_values(store, Stretch("local"))
    assert found.elements[0].result is None
    (latest,) = read_session_values(store, Stretch("local", most=2))
    assert [each.arguments["path"] for each in latest.elements] == ["run_1", "run_2"]


def _long_ago(store: Store, runs: int) -> None:
    """Runs of two tasks with 4 KB results each, in sessions of their own, a day before the others."""
    store.command(
        f"""CREATE VIEW old AS SELECT
            toUInt16(1) AS partition, 'local' AS tenant, concat('ses_', lower(hex(number))) AS session_id,
            number AS epoch, concat('run_', toString(number)) AS run_id, now64(6, 'UTC') - 90000 AS at
        FROM numbers({runs})"""
    )
    store.command(
        """INSERT INTO runs_raw
            (partition, tenant, session_id, epoch, run_id, occurred_at, log_offset, type, status)
        SELECT partition, tenant, session_id, epoch, run_id, at, epoch * 4 + row.1, row.2, row.3
        FROM old ARRAY JOIN [(0, 'run.started', 'running'), (3, 'run.completed', 'completed')] AS row"""
    )
    store.command(
        """INSERT INTO tasks_raw
            (partition, tenant, session_id, epoch, run_id, ended_at,
            log_offset, task_id, final, status, result)
        SELECT partition, tenant, session_id, epoch, run_id, at, epoch * 4 + row, toString(row), true,
            'completed', concat('"', hex(randomString(2000)), '"')
        FROM old ARRAY JOIN [1, 2] AS row"""
    )


def test_however_much_a_tenant_has_the_latest_runs_take_the_same_memory(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    _long_ago(store, 10_000)
    session = History()
    call(session, "run_1")
    call(session, "run_2")
    session.insert(store)
    monkeypatch.setattr(session_values, "LIMITS", replace(LIMITS, memory_bytes=32 << 20))
    for stretch in (Stretch("local", most=2), Stretch("local", h.time_of(h.START))):
        (found,) = read_session_values(store, stretch)
        assert [each.arguments["path"] for each in found.elements] == ["run_1", "run_2"]
        ((first, second),) = read_played_sessions(store, stretch)
        assert (first.calls[0].result, second.request) == ({"text": "of run_1"}, "do run_2")


def test_where_the_values_of_all_are_too_much_the_latest_runs_are_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = History()
    for number in range(8):
        session.add(h.run_started(tasks=1), f"run_{number}")
        session.add(
            h.completed("n1", arguments={"path": number}, result={"text": "x" * 10_000}), f"run_{number}"
        )
        session.add(h.run_completed(), f"run_{number}")
    session.insert(store)
    monkeypatch.setattr(session_values, "LIMITS", replace(LIMITS, result_bytes=50_000))
    (found,) = read_session_values(store, Stretch("local", most=8))
    assert [each.arguments["path"] for each in found.elements] == [4, 5, 6, 7]
    monkeypatch.setattr(session_values, "LIMITS", replace(LIMITS, result_bytes=5_000))
    with pytest.raises(QueryError):
        read_session_values(store, Stretch("local"))


def test_where_all_of_them_take_too_long_the_latest_runs_are_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = History()
    for number in range(8):
        call(session, f"run_{number}")
    session.insert(store)
    query, asked = Store.query, []

    def slow(self: Store, sql: str, given: dict[str, Any], limits: Limits) -> Rows:
        asked.append(given["most"])
        if given["most"] > 2:
            raise QueryError("Timeout exceeded", number=159)
        return query(self, sql, given, limits)

    monkeypatch.setattr(Store, "query", slow)
    (found,) = read_session_values(store, Stretch("local", most=8))
    assert [each.arguments["path"] for each in found.elements] == ["run_6", "run_7"]
    assert asked == [8, 4, 2]


def test_of_a_task_that_ended_anew_the_last_end_counts(store: Store) -> None:
    session = History()
    session.add(h.run_started(tasks=1, context={}), "run_1")
    session.add(h.unknown("n1", tool="git:log", arguments={"path": "a"}), "run_1")
    session.add(h.completed("n1", tool="git:log", arguments={"path": "a"}, result={"id": 1}), "run_1")
    session.add(h.run_completed(), "run_1")
    session.insert(store)
    (found,) = read_session_values(store, Stretch("local"))
    assert found.elements == (Past("git:log", {"path": "a"}, {"id": 1}),)
    ((run,),) = read_played_sessions(store, Stretch("local"))
    assert (run.element, len(run.calls)) == (found.elements[0], 1)


def test_a_call_that_was_answered_late_has_its_arguments_and_time(store: Store) -> None:
    session = History()
    session.add(h.run_started(tasks=1, context={}), "run_1")
    session.add(h.unknown("n1", tool="git:log", arguments={"path": "a"}, duration_ms=70.0), "run_1")
    session.add(h.resolved("n1", tool="git:log", result={"id": 1}), "run_1")
    session.add(h.run_completed(), "run_1")
    session.insert(store)
    (found,) = read_session_values(store, Stretch("local"))
    assert found.elements == (Past("git:log", {"path": "a"}, {"id": 1}),)
    ((run,),) = read_played_sessions(store, Stretch("local"))
    assert [(call.arguments, call.tool_ms) for call in run.calls] == [({"path": "a"}, 70.0)]


def test_a_task_that_was_skipped_is_part_of_its_run_and_no_call(store: Store) -> None:
    session = History()
    session.add(h.run_started(capability_id="cap_1", context={"repo": "."}), "run_1")
    session.add(h.completed("n1", tool="git:log", result={"id": 1}), "run_1")
    session.add(h.skipped("n2"), "run_1")
    session.add(h.run_completed(), "run_1")
    session.insert(store)
    (learned,) = read_session_values(store, Stretch("local"))
    ((played,),) = read_played_sessions(store, Stretch("local"))
    assert learned.elements == (played.element,) == (Past("cap_1", {"repo": "."}, {"n1": {"id": 1}}),)
    assert [call.tool for call in played.calls] == ["git:log"]
