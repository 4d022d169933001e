"""What an answer does to its task."""

from __future__ import annotations

from tests.processors.session_world import SessionWorld, catalog, data_of
from tests.processors.workflow.test_decide import READ, task
from tests.processors.workflow.test_internal import broken


def test_an_error_that_would_come_again_is_not_tried_again() -> None:
    retried = {"scope": "readonly", "approval": "auto", "retryable": True}
    world = SessionWorld(catalog=catalog({READ: retried}))
    world.start({"tasks": [task("a", "1")]})
    step = world.answer(world.call_of("a"), code="NOT_FOUND", retryable=False)
    assert [event.type for event in step.events] == ["task.failed", "run.failed"]
    assert data_of(step, "task.failed").final


def test_a_call_that_failed_is_no_result_whatever_came_with_it() -> None:
    world = SessionWorld()
    world.start({"tasks": [task("a", "1")]})
    step = world.outcome(broken(world.call_of("a"), {"text": "half of it"}))
    assert [event.type for event in step.events] == ["task.failed", "run.failed"]
