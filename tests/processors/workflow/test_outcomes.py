"""What an answer does to its task."""

from __future__ import annotations

import pytest

from pml.schemas.calls import CallEnded
from tests.processors.session_world import SessionWorld, catalog, data_of
from tests.processors.workflow.test_decide import READ, speculating, task
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


def nothing(call_id: str) -> CallEnded:
    """A call that is said to have gone well and gave no result."""
    return broken(call_id, {}).model_copy(update={"status": "ok", "result": None, "error": None})


def test_an_answer_without_a_result_fails_its_task() -> None:
    world = SessionWorld()
    world.start({"tasks": [task("a", "1")]})
    step = world.outcome(nothing(world.call_of("a")))
    assert [event.type for event in step.events] == ["task.failed", "run.failed"]


@pytest.mark.parametrize("failed", [True, False])
def test_an_early_call_that_failed_or_gave_nothing_is_not_kept(failed: bool) -> None:
    world = speculating()
    call_id = world.call_of("c")
    step = world.outcome(broken(call_id, {"text": "half of it"}) if failed else nothing(call_id))
    assert data_of(step, "speculation.ended").fate == "failed"


def test_an_answer_that_comes_twice_changes_nothing_the_second_time() -> None:
    world = speculating()
    call_id = world.call_of("c")
    assert world.answer(call_id, {"text": "three"}).events
    assert not world.answer(call_id, {"text": "other"}).events


def uses(world: SessionWorld) -> dict[tuple[str | None, str], str]:
    """How each task was served, by its run and its name, in order."""
    ended = ((event.run_id, event.data) for event in world.of_type("task.completed"))
    return {(run_id, data.task_id): data.served_by for run_id, data in ended}  # type: ignore[attr-defined]


def test_all_that_joined_a_call_have_its_result() -> None:
    world = speculating()
    early = world.call_of("c")
    world.start({"tasks": [task("x", "3"), task("y", "3"), task("z", "3")]}, "run_2")
    world.answer(early, {"text": "three"})
    assert [uses(world)["run_2", name] for name in "xyz"] == ["joined", "repeat", "repeat"]


def test_the_task_that_joined_first_is_the_hit_also_of_a_younger_run() -> None:
    world = speculating()
    early = world.call_of("c")
    world.start({"tasks": [task("x", "3")]}, "run_2")
    world.answer(world.call_of("b"))
    world.answer(early, {"text": "three"})
    assert (uses(world)["run_2", "x"], uses(world)["run_1", "c"]) == ("joined", "repeat")


def test_a_result_that_does_not_fit_the_cache_serves_the_task_that_joined_it() -> None:
    world = speculating(SessionWorld(catalog=catalog(cache_bytes=10)))
    world.answer(world.call_of("b"))
    step = world.answer(world.call_of("c"), {"text": "three"})
    assert data_of(step, "task.completed").served_by == "joined"
    assert data_of(step, "speculation.ended").fate == "served"


def test_a_result_that_is_too_old_and_too_large_for_the_cache_ends_once() -> None:
    short = {"scope": "readonly", "approval": "auto", "ttl_s": 1}
    world = speculating(SessionWorld(catalog=catalog({READ: short}, cache_bytes=10)))
    world.time_ms += 2_000
    step = world.answer(world.call_of("c"), {"text": "three"})
    assert [event.type for event in step.events] == ["speculation.ended"]
    assert data_of(step, "speculation.ended").reason == "evicted"


@pytest.mark.parametrize("shared", [True, False])
def test_a_hit_is_verified_unless_others_may_change_what_it_reads(shared: bool) -> None:
    entry = {"scope": "readonly", "approval": "auto", "shared": shared}
    world = speculating(SessionWorld(catalog=catalog({READ: entry}, verified_share=1.0)))
    world.answer(world.call_of("b"))
    step = world.answer(world.call_of("c"), {"text": "three"})
    assert data_of(step, "task.completed").served_by == "joined"
    assert ("speculation.verifying" in [event.type for event in step.events]) is not shared


def test_a_joined_call_saves_nothing_where_it_takes_longer_than_a_new_one() -> None:
    world = speculating()
    world.answer(world.call_of("b"))
    world.time_ms += 50
    step = world.answer(world.call_of("c"), {"text": "three"}, duration_ms=10.0)
    assert data_of(step, "task.completed").saved_ms == 0.0


def test_a_task_that_is_tried_again_is_called_whatever_runs_early() -> None:
    again = {"scope": "readonly", "approval": "auto", "retryable": {"attempts": 2, "backoff_ms": 1_000}}
    world = SessionWorld(catalog=catalog({READ: again}))
    world.start({"tasks": [task("x", "3")]}, "run_2")
    world.answer(world.call_of("x"), code="NETWORK", retryable=True)
    early = speculating(world).call_of("c")
    started = data_of(world.due(), "task.started")
    assert (started.task_id, started.served_by, started.call_id == early) == ("x", "call", False)


def test_a_second_answer_to_an_attempt_that_failed_changes_nothing() -> None:
    retried = {"scope": "readonly", "approval": "auto", "retryable": True}
    world = SessionWorld(catalog=catalog({READ: retried}))
    world.start({"tasks": [task("a", "1")]})
    first = world.call_of("a")
    world.answer(first, code="NETWORK", retryable=True)
    assert world.answer(first, {"text": "one"}).events == ()
    world.due()
    assert world.call_of("a") != first


def test_a_joined_call_that_failed_takes_none_of_the_attempts_that_its_task_has() -> None:
    retried = {"scope": "readonly", "approval": "auto", "retryable": {"attempts": 2, "backoff_ms": 5_000}}
    world = speculating(SessionWorld(catalog=catalog({READ: retried})))
    world.answer(world.call_of("b"))
    for _ in range(2):  # what was joined, and the first real call
        world.answer(world.call_of("c"), code="SERVER_BUSY", type="NETWORK", retryable=True)
    assert world.session_run().live
    world.due()
    world.answer(world.call_of("c"))
    assert world.session_run().status == "completed"
