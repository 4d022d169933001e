"""What a person may say of a task, and of which runs."""

from __future__ import annotations

import pytest

from pml.schemas.calls import CallEnded
from tests.processors.session_world import SessionWorld, catalog, data_of
from tests.processors.workflow.test_decide import READ, task
from tests.processors.workflow.test_internal import broken

WRITE = {"tasks": [task("w", "1", tool="files:write_file")]}
DONE = {"task_id": "w", "resolution": "done"}


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


def without_result(call_id: str) -> CallEnded:
    """An answer that says that all is well, and nothing else."""
    return CallEnded(
        call_id=call_id,
        tenant="local",
        session_id="s1",
        status="ok",
        started_at="2023-11-14T22:13:20.000000Z",
    )


def test_a_late_answer_without_a_result_is_no_success() -> None:
    """As it would not have been in time."""
    world = SessionWorld()
    world.start(WRITE)
    call_id = world.call_of("w")
    world.answer(call_id, code="TIMEOUT")
    resolved = data_of(world.outcome(without_result(call_id)), "task.resolved")
    assert (resolved.resolution, resolved.error.code) == ("not_done", "OK")


def asking(**policy: int) -> SessionWorld:
    """A write of which nobody knows; a tool that can tell will be asked."""
    verify = {"tool": READ, "arguments": {"path": "{path}"}, "done": "true", "after_s": 1}
    entry = {"scope": "filesystem", "approval": "auto", "verify": verify}
    world = SessionWorld(catalog=catalog({"files:write_file": entry}, **policy))
    world.start(WRITE)
    world.answer(world.call_of("w"), code="TIMEOUT")
    return world


def test_a_question_that_is_answered_without_a_result_was_asked_in_vain() -> None:
    world = asking()
    world.due()
    step = world.outcome(without_result(world.call_of(READ)))
    assert [event.type for event in step.events] == ["task.unverified"]


@pytest.mark.parametrize("asked", [True, False])
def test_a_persons_word_ends_the_question_whether_it_was_asked_yet_or_not(asked: bool) -> None:
    world = asking()
    if asked:
        world.due()
    open_calls = list(world.open_calls)
    step = world.send("task.resolve", data={"task_id": "w", "resolution": "done"})
    assert [event.type for event in step.events] == ["task.resolved", "run.retried", "run.completed"]
    assert [(cancel.call_id, cancel.reason) for cancel in step.cancels] == [
        (call_id, "settled") for call_id in open_calls
    ]
    assert world.session is not None
    assert not world.session.live


def test_a_run_goes_on_when_the_last_of_its_unknown_tasks_is_settled() -> None:
    world = SessionWorld()
    tasks = [task(name, name, tool="files:write_file") for name in ("v", "w")]
    world.start({"tasks": [*tasks, task("x", "9", "v", "w")]})
    for name in ("v", "w"):
        world.answer(world.call_of(name), code="TIMEOUT")
    first = world.send("task.resolve", data={"task_id": "v", "resolution": "done"})
    assert [event.type for event in first.events] == ["task.resolved"]
    second = world.send("task.resolve", data={"task_id": "w", "resolution": "done"})
    assert data_of(second, "run.retried").task_ids == ()
    assert data_of(second, "task.started").task_id == "x"


def test_what_is_settled_while_a_run_is_being_stopped_opens_nothing() -> None:
    world = SessionWorld()
    tasks = [task("w", "1", tool="files:write_file"), task("x", "2"), task("c", "3", "w")]
    world.start({"tasks": [*tasks, task("v", "4", "x", tool="files:write_file")]})
    world.answer(world.call_of("w"), code="TIMEOUT")
    world.answer(world.call_of("x"))
    world.send("run.abort")
    assert data_of(world.send("task.resolve", data=DONE), "task.resolved").task_ids == ()
    step = world.answer(world.call_of("v"))
    assert [event.type for event in step.events] == ["task.completed", "run.aborted"]


def test_what_is_settled_once_a_run_was_stopped_opens_nothing() -> None:
    world = SessionWorld()
    tasks = [task("w", "1", tool="files:write_file"), task("x", "2"), task("c", "3", "w")]
    world.start({"tasks": [*tasks, task("y", "4", "x")]})
    world.answer(world.call_of("w"), code="TIMEOUT")
    world.answer(world.call_of("x"))
    assert world.types()[-1] != "run.failed"
    assert world.send("run.abort").events[-1].type == "run.aborted"
    assert data_of(world.send("task.resolve", data=DONE), "task.resolved").task_ids == ()


@pytest.mark.parametrize(("resolution", "status"), [("done", "completed"), ("not_done", "failed")])
def test_an_approved_write_that_was_settled_keeps_neither_call_nor_approval(
    resolution: str, status: str
) -> None:
    world = SessionWorld()
    delete = task("w", "1", tool="files:delete_file")
    asked = data_of(world.start({"tasks": [delete, task("x", "9")]}), "approval.requested")
    world.send("approval.decide", data={"approval_id": asked.approval_id, "decision": "approve"})
    world.answer(world.call_of("w"), code="TIMEOUT")
    world.send("task.resolve", data={"task_id": "w", "resolution": resolution})
    assert world.session is not None
    settled = world.session.runs["run_1"].task("w")
    assert (settled.status, settled.call, settled.approval) == (status, None, None)
