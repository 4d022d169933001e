"""A person's answer about a call, and what becomes of the call that was begun early for its task."""

from __future__ import annotations

import pytest

from tests.processors.session_world import SessionWorld, catalog, data_of
from tests.processors.speculation.test_candidates import LIST, READ, SEARCH
from tests.processors.workflow.test_decide import task

DELETE = {"tasks": [task("a", "a.md", tool="files:delete_file")]}


def decide(world: SessionWorld, decision: str) -> list[tuple[str, str]]:
    """Answer what was asked last; what follows, and of which task."""
    asked = world.of_type("approval.requested")[-1].data.approval_id  # type: ignore[attr-defined]
    step = world.send("approval.decide", data={"approval_id": asked, "decision": decision})
    return [(event.type, getattr(event.data, "task_id", "")) for event in step.events]


def asked_about_what_began_early() -> SessionWorld:
    """`late` began early; then its tool came to need a person. `other` is at work."""
    world = SessionWorld()
    late = {"id": "late", **READ, "depends_on": ["quick", "slow"]}
    other = {"id": "other", "tool": "files:parse", "depends_on": ["slow"]}
    world.start({"tasks": [{"id": "quick", **LIST}, {"id": "slow", **SEARCH}, late, other]})
    world.answer(world.call_of("quick"), {"first": "x"})
    world.catalog = catalog({READ["tool"]: {"scope": "readonly", "approval": "hil"}})
    world.answer(world.call_of("slow"), {"matches": []})
    return world


@pytest.mark.parametrize(("four_eyes", "told"), [(False, "approval.granted"), (True, "command.rejected")])
def test_who_submitted_a_run_approves_its_calls_unless_four_eyes_are_wanted(
    four_eyes: bool, told: str
) -> None:
    world = SessionWorld(catalog=catalog(four_eyes=four_eyes))
    world.start(DELETE, principal="person:ada")
    assert decide(world, "approve")[0][0] == told


def test_a_question_is_given_up_at_its_time_and_not_before_and_no_other_one() -> None:
    world = SessionWorld(catalog=catalog(approval_timeout_ms=1_000))
    step = world.start(DELETE)
    asked = data_of(step, "approval.requested").approval_id
    due_at_ms = world.time_ms
    world.time_ms += 999
    assert world.reach("approval", asked, due_at_ms, attempt=0).events == ()
    world.time_ms += 1
    assert world.reach("approval", "apr_other", due_at_ms, attempt=0).events == ()
    step = world.reach("approval", asked, due_at_ms, attempt=0)
    assert [event.type for event in step.events] == ["approval.expired", "task.failed", "run.failed"]


def test_what_began_early_for_a_call_ends_where_a_person_rejects_the_call() -> None:
    world = asked_about_what_began_early()
    assert decide(world, "reject") == [
        ("approval.rejected", "late"),
        ("task.failed", "late"),
        ("speculation.ended", "late"),
    ]
    assert world.of_type("speculation.ended")[-1].data.reason == "unused"  # type: ignore[attr-defined]


def test_what_began_early_for_a_call_ends_where_the_approved_call_cannot_begin() -> None:
    world = asked_about_what_began_early()
    assert world.session is not None
    world.lose(world.session.runs["run_1"].payload)
    assert decide(world, "approve") == [
        ("approval.granted", "late"),
        ("task.failed", "late"),
        ("speculation.ended", "late"),
    ]
    assert world.of_type("speculation.ended")[-1].data.reason == "unused"  # type: ignore[attr-defined]


def test_what_began_early_for_an_approved_call_ends_with_the_result_of_that_call() -> None:
    world = asked_about_what_began_early()
    assert decide(world, "approve") == [("approval.granted", "late"), ("task.started", "late")]
    (real,) = [
        call.call_id for call in world.open_calls.values() if call.tool == READ["tool"] and call.approval_id
    ]
    step = world.answer(real, {"text": "a"})
    assert data_of(step, "speculation.ended").reason == "superseded"
