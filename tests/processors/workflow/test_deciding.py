"""Decisions about a run that waits at a checkpoint."""

from __future__ import annotations

from typing import Any

from tests.processors.session_world import SessionWorld, data_of
from tests.processors.workflow.test_decide import task


def asked_twice() -> SessionWorld:
    """The run waits at a checkpoint, and one of its calls for a person."""
    world = SessionWorld()
    first = [task("w", "1", tool="files:write_file"), task("x", "2", tool="files:parse")]
    second = [task("y", "3", "x", tool="files:delete_file"), task("z", "4", "w", tool="files:parse")]
    world.start({"tasks": [*first, *second], "options": {"per_layer_validation": True}})
    world.answer(world.call_of("w"), code="TIMEOUT")
    world.answer(world.call_of("x"))
    world.send("run.continue")
    world.send("task.resolve", data={"task_id": "w", "resolution": "retry"})
    world.answer(world.call_of("w"))
    assert world.types()[-1] == "decision.required"
    return world


def status(world: SessionWorld) -> str:
    assert world.session is not None
    return world.session.runs["run_1"].status


def test_a_run_that_may_go_on_still_waits_for_the_person_who_was_asked_about_a_call() -> None:
    world = asked_twice()
    assert data_of(world.send("run.continue"), "decision.made").run_status == "waiting" == status(world)


def test_a_run_whose_call_was_approved_still_waits_at_its_checkpoint() -> None:
    world = asked_twice()
    asked: Any = world.of_type("approval.requested")[-1].data
    answer = {"approval_id": asked.approval_id, "decision": "approve"}
    step = world.send("approval.decide", data=answer)
    assert data_of(step, "approval.granted").run_status == "waiting" == status(world)


def test_the_time_of_an_earlier_checkpoint_decides_nothing_at_a_later_one() -> None:
    world = SessionWorld()
    tasks = [task("a", "1"), task("b", "2", "a"), task("c", "3", "b")]
    world.start({"tasks": tasks, "options": {"per_layer_validation": True, "decision_timeout_s": 1}})
    for name in ("a", "b"):
        world.answer(world.call_of(name))
        if name == "a":
            world.send("run.continue")
    world.time_ms += 1_000
    assert world.reach("decision", "k1", world.time_ms, attempt=0).events == ()
    assert data_of(world.reach("decision", "k2", world.time_ms, attempt=0), "decision.made").timed_out
