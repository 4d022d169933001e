"""A deadline that was sent before something else happened changes nothing any more."""

from __future__ import annotations

from typing import Any

from tests.processors.session_world import SessionWorld, catalog, data_of
from tests.processors.workflow.test_decide import READ, speculating, task

AGAIN = {"scope": "readonly", "approval": "auto", "retryable": {"attempts": 2, "backoff_ms": 60_000}}


def waiting_for_a_retry(*more: dict[str, Any], **policy: int) -> SessionWorld:
    world = SessionWorld(catalog=catalog({READ: AGAIN}, **policy))
    world.start({"tasks": [task("a", "1"), *more]})
    world.answer(world.call_of("a"), code="NETWORK", retryable=True)
    return world


def test_a_time_out_of_an_attempt_that_failed_ends_no_task_and_begins_none() -> None:
    world = waiting_for_a_retry(task_timeout_ms=1_000, queue_timeout_ms=0, bridge_grace_ms=0)
    world.time_ms += 61_000
    assert world.reach("task", "a", world.time_ms).events == ()


def test_a_retry_that_is_due_after_its_run_was_stopped_begins_nothing() -> None:
    world = waiting_for_a_retry(task("w", "2", tool="files:write_file"))
    world.send("run.abort")
    world.time_ms += 61_000
    step = world.reach("retry", "a", world.time_ms)
    assert (step.events, step.calls) == ((), ())


def test_a_retry_that_cannot_begin_ends_its_run() -> None:
    world = waiting_for_a_retry()
    assert world.session is not None
    world.lose(world.session.runs["run_1"].payload)
    assert [event.type for event in world.due().events] == ["task.failed", "run.failed"]


def test_a_speculation_is_not_given_up_before_its_time() -> None:
    world = speculating()
    assert world.reach("speculation", world.call_of("c"), world.time_ms).events == ()


def test_a_speculation_that_was_answered_is_not_given_up_at_its_time() -> None:
    world = speculating()
    call_id = world.call_of("c")
    world.answer(call_id, {"text": "three"})
    world.time_ms += 95_000
    assert world.reach("speculation", call_id, world.time_ms).events == ()


def test_a_speculation_that_a_task_has_joined_ends_with_the_task() -> None:
    world = speculating()
    call_id = world.call_of("c")
    world.answer(world.call_of("b"))
    world.time_ms += 95_000
    assert world.reach("speculation", call_id, world.time_ms).events == ()
    assert data_of(world.reach("task", "c", world.time_ms), "speculation.ended").cancelled
