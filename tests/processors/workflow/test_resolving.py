"""What a person may say of a task, and of which runs."""

from __future__ import annotations

from tests.processors.session_world import SessionWorld, catalog, data_of
from tests.processors.workflow.test_decide import task
from tests.processors.workflow.test_internal import broken

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


def test_a_stopped_runs_write_is_not_begun_again_while_another_one_is_awaited() -> None:
    world = SessionWorld()
    world.start({"tasks": [*WRITE["tasks"], task("v", "2", tool="files:write_file")]})
    world.send("run.abort")
    world.answer(world.call_of("w"), code="TIMEOUT")
    step = world.send("task.resolve", data={"task_id": "w", "resolution": "retry"})
    assert data_of(step, "command.rejected").error["code"] == "NOT_WAITING"


def test_a_full_session_takes_no_run_up_again_but_may_be_told_what_was_not_done() -> None:
    world = SessionWorld(catalog=catalog(runs_live_max=1))
    world.start(WRITE)
    world.answer(world.call_of("w"), code="TIMEOUT")
    world.start({"tasks": [task("x", "9")]}, "run_2")
    refused = world.send("task.resolve", data={"task_id": "w", "resolution": "done"})
    assert data_of(refused, "command.rejected").error["code"] == "SESSION_FULL"
    step = world.send("task.resolve", data={"task_id": "w", "resolution": "not_done"})
    assert [event.type for event in step.events] == ["task.resolved"]


def test_a_late_failure_is_one_whatever_came_with_it() -> None:
    world = SessionWorld()
    world.start(WRITE)
    call_id = world.call_of("w")
    world.answer(call_id, code="TIMEOUT")
    resolved = data_of(world.outcome(broken(call_id, {"ok": True})), "task.resolved")
    assert (resolved.resolution, resolved.error.code) == ("not_done", "TOOL_ERROR")
