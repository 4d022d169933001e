"""What pauses and decisions leave behind in a run that is taken up again."""

from __future__ import annotations

from typing import Any

from pml.processors.workflow import deadline
from tests.processors.session_world import SessionWorld, catalog, data_of
from tests.processors.workflow.test_decide import task


def test_a_retried_run_asks_again_when_the_same_task_fails_again() -> None:
    world = SessionWorld()
    world.start({"tasks": [{"id": "a", "tool": "files:parse"}], "options": {"decision_points": "on_error"}})
    for _ in range(2):
        world.answer(world.call_of("a"), code="NOT_FOUND")
        world.send("run.continue")
        world.send("run.retry")
    assert world.types().count("decision.required") == world.types().count("run.retried") == 2


def parse(task_id: str, *depends_on: str) -> dict[str, Any]:
    return task(task_id, task_id, *depends_on, tool="files:parse")


def write_of_unknown_outcome(*others: dict[str, Any], **options: Any) -> SessionWorld:
    world = SessionWorld()
    world.start({"tasks": [task("w", "1", tool="files:write_file"), *others], "options": options})
    world.answer(world.call_of("w"), code="TIMEOUT")
    return world


def test_somebody_is_asked_about_a_write_of_unknown_outcome_as_about_a_failure() -> None:
    world = write_of_unknown_outcome(decision_points="on_error")
    (reached,) = world.of_type("checkpoint.reached")
    data: Any = reached.data
    assert (data.because, data.failed) == ("on_error", ("w",))


def test_a_write_that_is_begun_again_while_its_run_goes_on_has_not_failed() -> None:
    world = write_of_unknown_outcome(parse("slow"))
    world.send("task.resolve", data={"task_id": "w", "resolution": "retry"})
    world.answer(world.call_of("w"))
    assert world.answer(world.call_of("slow")).events[-1].type == "run.completed"


def test_a_run_that_goes_on_for_a_write_that_was_done_fails_for_what_else_failed() -> None:
    world = write_of_unknown_outcome(parse("other"))
    world.answer(world.call_of("other"), code="NOT_FOUND")
    step = world.send("task.resolve", data={"task_id": "w", "resolution": "done"})
    assert [event.type for event in step.events] == ["task.resolved", "run.retried", "run.failed"]
    assert data_of(step, "run.failed").error["details"] == {"tasks": ["other"]}


def test_what_a_plan_begins_with_is_not_asked_about_again_whatever_layer_it_lies_in() -> None:
    """After the retry, `c` of the last layer stands while that layer is asked about: the plan comes below."""
    world = SessionWorld()
    first = [parse("x"), parse("b", "x"), parse("d", "x"), parse("c", "d"), parse("e", "b")]
    world.start({"tasks": first, "options": {"per_layer_validation": True, "speculation": "off"}})
    world.answer(world.call_of("x"))
    world.send("run.continue")
    world.answer(world.call_of("b"), code="NOT_FOUND")
    world.answer(world.call_of("d"))
    world.send("run.continue")
    world.answer(world.call_of("c"))
    world.send("run.retry")
    world.answer(world.call_of("b"))
    step = world.send("run.replan", data={"tasks": [parse("f", "b")]})
    assert data_of(step, "layer.released").layer == 3
    assert [call.task_id for call in step.calls] == ["f"]


def test_a_task_that_waits_for_a_person_waits_for_no_next_attempt() -> None:
    """Its tool came to need approval before the attempt."""
    rule = {"scope": "minimal", "retryable": {"attempts": 2, "backoff_ms": 100}}
    world = SessionWorld(catalog=catalog({"files:parse": {**rule, "approval": "auto"}}))
    world.start({"tasks": [parse("a")]})
    world.answer(world.call_of("a"), code="NETWORK", retryable=True)
    world.catalog = catalog({"files:parse": {**rule, "approval": "hil"}})
    assert world.due().events[-1].type == "approval.requested"
    assert world.session is not None
    following = deadline(world.session)
    assert following is not None
    assert following.kind == "approval"


def test_what_is_skipped_before_its_next_attempt_keeps_neither_call_nor_approval() -> None:
    retried = {"attempts": 2, "backoff_ms": 60_000}
    rule = {"scope": "filesystem", "approval": "hil", "idempotent": True, "retryable": retried}
    world = SessionWorld(catalog=catalog({"files:delete_file": rule}))
    delete = {"tasks": [task("a", "1", tool="files:delete_file")], "options": {"timeout_s": 20}}
    asked = data_of(world.start(delete), "approval.requested")
    world.send("approval.decide", data={"approval_id": asked.approval_id, "decision": "approve"})
    world.answer(world.call_of("a"), code="NETWORK", retryable=True)
    assert world.due().events[-1].type == "run.failed"
    assert world.session is not None
    skipped = world.session.runs["run_1"].task("a")
    assert (skipped.status, skipped.call, skipped.approval) == ("skipped", None, None)


def test_what_is_settled_and_opens_nothing_releases_no_layer() -> None:
    later = [parse("x"), parse("y", "x"), parse("z", "y")]
    world = write_of_unknown_outcome(*later, per_layer_validation=True, speculation="off")
    world.answer(world.call_of("x"))
    world.send("run.continue")
    world.send("task.resolve", data={"task_id": "w", "resolution": "not_done"})
    assert world.answer(world.call_of("y")).events[-1].type == "decision.required"
