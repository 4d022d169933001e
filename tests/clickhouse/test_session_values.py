"""Sessions with values: what completed in sessions that somebody named, in order, and of one tenant."""

from __future__ import annotations

import pytest

from pml.clickhouse.client import Store
from pml.clickhouse.migrate import migrate
from pml.clickhouse.training.session_values import VALUE_BYTES_MAX, Stretch, read_session_values
from pml.processors.learning.scene import Past
from tests.clickhouse import history as h
from tests.clickhouse.history import History

pytestmark = pytest.mark.integration


@pytest.fixture
def store(empty_store: Store) -> Store:
    migrate(empty_store)
    return empty_store


def call(session: History, run_id: str, tool: str = "files:read_file", **fields: object) -> None:
    """A run of one call that completed."""
    session.add(h.run_started(intent=f"do {run_id}", tasks=1, layers=1, **fields), run_id)
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
    session.add(h.run_started(tasks=1), "run_1")
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
