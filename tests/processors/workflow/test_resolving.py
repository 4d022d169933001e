"""What a person may say of a task, and of which runs."""

from __future__ import annotations

from tests.processors.session_world import SessionWorld, data_of
from tests.processors.workflow.test_decide import task

WRITE = {"tasks": [task("w", "1", tool="files:write_file")]}


def test_what_became_of_a_stopped_runs_write_can_be_said_but_it_is_not_begun_again() -> None:
    world = SessionWorld()
    world.start(WRITE)
    world.send("run.abort")
    world.answer(world.call_of("w"), code="TIMEOUT")
    again = world.send("task.resolve", data={"task_id": "w", "resolution": "retry"})
    assert data_of(again, "command.rejected").error["code"] == "NOT_WAITING"
    done = world.send("task.resolve", data={"task_id": "w", "resolution": "done"})
    assert [event.type for event in done.events] == ["task.resolved"]
    assert world.session is not None
    assert world.session.runs["run_1"].status == "aborted"


def test_nothing_can_be_said_of_a_run_that_is_not_kept() -> None:
    world = SessionWorld()
    world.start(WRITE)
    world.answer(world.call_of("w"))
    step = world.send("task.resolve", data={"task_id": "w", "resolution": "done"})
    assert data_of(step, "command.rejected").error["code"] == "RUN_GIVEN_UP"
