"""A deadline that was sent before something else happened changes nothing any more."""

from __future__ import annotations

from typing import Any

from pml.processors.workflow import Input, fail_too_large
from pml.schemas.calls import CallEnded
from tests.processors.session_world import OUTCOMES, SessionWorld, catalog, data_of
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


def test_a_retry_that_now_waits_for_a_person_is_not_begun_by_its_deadline_coming_again() -> None:
    world = waiting_for_a_retry()
    world.catalog = catalog({READ: AGAIN | {"approval": "hil"}})
    assert data_of(world.due(), "approval.requested").task_id == "a"
    step = world.reach("retry", "a", world.time_ms)
    assert (step.events, step.calls) == ((), ())


def test_a_retry_of_a_run_that_has_failed_meanwhile_begins_nothing() -> None:
    """Its answer was too large for the log, so that the run failed with a task that was still to be tried."""
    world = waiting_for_a_retry(task("b", "2", tool="files:parse"))
    ended = CallEnded(call_id=world.call_of("b"), tenant="local", session_id="s1", status="error")
    source = Input(OUTCOMES, 3, 99, world.time_ms, "local", "s1", ended)
    world.take(fail_too_large(world.session, source, world.catalog, world.log_end))
    assert world.types()[-1] == "run.failed"
    world.time_ms += 61_000
    step = world.reach("retry", "a", world.time_ms)
    assert (step.events, step.calls) == ((), ())
