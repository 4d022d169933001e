"""The worst legal input fits one batch of the log; one that does not fails its run and fits."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.processors.speculation.accounts import balanced
from pml.processors.workflow import (
    Input,
    Session,
    Step,
    Unreadable,
    decode_session,
    encode_session,
    fail_too_large,
)
from pml.schemas.calls import CallEnded, CallError, ToolResult
from pml.schemas.codec import encode
from pml.schemas.commands import Command, DeadlineKind, DeadlineReach, RunStart
from pml.schemas.topics import LOG_BYTES_MAX
from pml.schemas.workflow import Workflow
from tests.processors.file_tools import random_workflow
from tests.processors.session_world import COMMANDS, OUTCOMES, SessionWorld, catalog, data_of

# Key, headers, and what a record costs in a batch, for ids at their longest.
AROUND_BYTES = 800
LONG = "x" * 10_200


def size(step: Step) -> int:
    return sum(len(encode(event)) + AROUND_BYTES for event in step.events)


def reads(count: int, *before: str, name: str = "r", parameter: str | None = None) -> list[dict[str, Any]]:
    """Reads whose arguments are as large as the log keeps them; each touches a path as long."""
    return [
        {
            "id": f"{name}{i}",
            "tool": "files:read_file",
            "arguments": {"path": {"type": "parameter", "parameter_name": parameter or f"{name}{i}"}},
            "depends_on": list(before),
        }
        for i in range(count)
    ]


def context(tasks: list[dict[str, Any]]) -> dict[str, str]:
    names = {task["arguments"]["path"]["parameter_name"] for task in tasks}
    return {name: f"{name}/{LONG}"[: len(LONG)] for name in names}


def parse(task_id: str) -> dict[str, Any]:
    return {"id": task_id, "tool": "files:parse", "arguments": {"text": task_id}}


def world() -> SessionWorld:
    return SessionWorld(catalog=catalog(budget_name="high"), checked_every=10_000)


def test_a_whole_layer_of_the_largest_calls_fits() -> None:
    tasks = reads(200)
    step = world().start({"tasks": tasks}, context=context(tasks))
    assert len(step.calls) == 200
    assert LOG_BYTES_MAX / 4 < size(step) < LOG_BYTES_MAX


def test_a_whole_layer_of_the_largest_hits_fits() -> None:
    found = world()
    tasks = reads(200, "a1", "a2")
    found.start({"tasks": [parse("a1"), parse("a2"), *tasks]}, context=context(tasks))
    found.answer(found.call_of("a1"))
    while early := [call for call in found.open_calls.values() if call.speculative]:
        found.answer(early[0].call_id, {"text": LONG})
    step = found.answer(found.call_of("a2"))
    assert sum(event.type == "speculation.ended" for event in step.events) == 200
    assert LOG_BYTES_MAX / 2 < size(step) < LOG_BYTES_MAX


def test_the_end_of_a_run_with_a_whole_layer_running_fits() -> None:
    found = world()
    tasks = [*reads(200), *reads(200, "r0", name="s")]
    found.start({"tasks": tasks, "options": {"timeout_s": 20}}, context=context(tasks))
    step = found.due()
    assert [len(step.cancels), step.events[-1].type] == [200, "run.failed"]
    assert size(step) < LOG_BYTES_MAX


def cascade() -> tuple[SessionWorld, Step]:
    """One decision in which a cached result serves one layer after the other, 498 times; undone again."""
    found = world()
    layers = [reads(1, "a1", "a2", name="r", parameter="same")]
    for number, count in enumerate((199, 199, 99)):
        layers.append(reads(count, layers[-1][0]["id"], name=f"s{number}_", parameter="same"))
    tasks = [task for layer in layers for task in layer]
    found.start({"tasks": [parse("a1"), parse("a2"), *tasks]}, context=context(tasks))
    found.answer(found.call_of("a1"))
    found.answer(found.call_of("r0"), {"text": LONG})
    before = found.session
    step = found.answer(found.call_of("a2"))
    found.session = before
    found.log_end -= len(step.events)
    return found, step


def test_what_does_not_fit_fails_its_run() -> None:
    found, step = cascade()
    assert size(step) > LOG_BYTES_MAX
    assert found.session is not None
    call = found.session.runs["run_1"].tasks["a2"].call
    assert call is not None
    outcome = _outcome(call.call_id, ok=True)
    instead = check(found, Input(OUTCOMES, 3, 99, found.time_ms, "local", "s1", outcome))
    assert data_of(instead, "run.failed").error["code"] == "EVENTS_TOO_LARGE"
    assert size(instead) < 10_000
    assert instead.session is not None
    assert not instead.session.live


def _outcome(call_id: str, ok: bool) -> CallEnded:
    return CallEnded(
        call_id=call_id,
        tenant="local",
        session_id="s1",
        status="ok" if ok else "error",
        result=ToolResult(structured={"x": 1}) if ok else None,
        error=None if ok else CallError(code="TIMEOUT", message="too late"),
        started_at="2023-11-14T22:13:20.000000Z",
    )


def check(found: SessionWorld, source: Input) -> Step:
    """The answer is lawful: it folds, the accounts add up, the record reads back, what is over is over."""
    step = fail_too_large(found.session, source, found.catalog, found.log_end)
    found.check_fold(step)
    session = step.session
    assert isinstance(session, Session)
    assert balanced(session)
    assert decode_session(encode_session(session), found.definitions.get) == session
    ended = {event.run_id for event in step.events if event.type == "run.failed"}
    assert not any(session.runs[run_id].live for run_id in ended if run_id)
    assert found.derived(session) <= (found.derived(found.session) if found.session else set())
    return step


@given(seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_any_answer_may_turn_out_too_large(seed: int) -> None:
    random = Random(seed)
    found = SessionWorld(catalog=catalog(budget_name="high"), checked_every=10_000)
    for number in range(random.randint(1, 3)):
        found.start(random_workflow(random), f"run_{number}")
    for _ in range(random.randint(0, 6)):
        if found.open_calls:
            found.answer(random.choice(list(found.open_calls)), {"text": "x", "size": 9, "names": []})
    assert found.session is not None
    for call in list(found.open_calls.values()):
        outcome = _outcome(call.call_id, ok=random.random() < 0.7)
        step = check(found, Input(OUTCOMES, 3, 99, found.time_ms, "local", "s1", outcome))
        if call.speculative:
            assert step.events == ()
            continue
        assert data_of(step, "run.failed").error["code"] == "EVENTS_TOO_LARGE"
        if call.effect == "write" and outcome.status == "ok":
            assert data_of(step, "task.completed").task_id == call.task_id


def reach(found: SessionWorld, kind: DeadlineKind, target: str = "") -> Step:
    data = DeadlineReach(kind=kind, target=target, due_at_ms=found.time_ms)
    command = Command(type="deadline.reach", command_id="due", session_id="s1", run_id="run_1", data=data)
    return check(found, Input(COMMANDS, 3, 99, found.time_ms, "local", "s1", command))


def test_a_deadline_too_large_ends_its_run_and_is_not_sent_again() -> None:
    found = world()
    tasks = [parse("a1"), {"id": "a2", "tool": "files:write_file", "arguments": {"path": "a", "text": "b"}}]
    found.start({"tasks": tasks})
    step = reach(found, "run")
    assert [event.type for event in step.events] == ["task.failed", "task.unknown", "run.failed"]
    assert data_of(step, "run.failed").error["details"] == {"tasks": ["a2"]}
    assert [cancel.reason for cancel in step.cancels] == ["too_large"]
    assert step.session is not None
    assert list(step.session.doubtful.values()) == [("files:a",)]


def test_whatever_of_the_run_is_at_work_is_given_up_also_what_began_early() -> None:
    found = world()
    write = {"id": "w", "tool": "files:write_file", "arguments": {"path": "b", "text": "b"}}
    tasks = [parse("a1"), write, *reads(1, "w", parameter="same")]
    found.start({"tasks": tasks}, context={"same": "a"})
    found.answer(found.call_of("a1"))
    step = reach(found, "run")
    assert [event.type for event in step.events] == ["task.unknown", "speculation.ended", "run.failed"]
    assert [cancel.reason for cancel in step.cancels] == ["aborted"]


def test_a_run_that_failed_while_it_waited_for_a_decision_can_be_retried() -> None:
    found = world()
    waiting = {"per_layer_validation": True}
    tasks = [parse("a1"), *reads(1, "a1"), *reads(1, "r0", name="s")]
    found.start({"tasks": tasks, "options": waiting}, context={"r0": "a", "s0": "b"})
    found.answer(found.call_of("a1"))
    found.take(reach(found, "decision", "k1"))
    step = found.send("run.retry")
    assert [event.type for event in step.events][:3] == ["run.retried", "layer.released", "task.started"]
    waits = found.answer(found.call_of("r0"))
    assert waits.session is not None
    assert waits.session.runs["run_1"].status == "waiting"


def test_a_persons_question_ends_with_its_run_and_is_asked_again_when_that_is_retried() -> None:
    found = world()
    delete = {"id": "a", "tool": "files:delete_file", "arguments": {"path": "a"}}
    asked = data_of(found.start({"tasks": [delete]}), "approval.requested")
    step = reach(found, "approval", asked.approval_id)
    assert [event.type for event in step.events] == ["approval.expired", "run.failed"]
    found.take(step)
    again = data_of(found.send("run.retry"), "approval.requested")
    assert again.approval_id != asked.approval_id


def test_a_deadline_too_large_ends_its_own_run_and_no_other() -> None:
    found = world()
    for run_id in ("run_1", "run_2"):
        found.start({"tasks": [parse("a1")]}, run_id)
    step = reach(found, "run")
    assert {event.run_id for event in step.events} == {"run_1"}
    found.take(step)
    assert not reach(found, "run").events, "a run ends once"


def test_what_is_unknown_or_waits_for_its_next_attempt_stays_so() -> None:
    again = {"scope": "readonly", "approval": "auto", "retryable": {"attempts": 2, "backoff_ms": 1_000}}
    found = SessionWorld(catalog=catalog({"files:search": again}))
    write = {"id": "w", "tool": "files:write_file", "arguments": {"path": "a", "text": "b"}}
    found.start({"tasks": [parse("a1"), write, {"id": "r", "tool": "files:search"}]})
    found.answer(found.call_of("w"), code="TIMEOUT")
    found.answer(found.call_of("r"), code="NETWORK", retryable=True)
    step = reach(found, "run")
    assert [event.type for event in step.events] == ["task.failed", "run.failed"]
    assert data_of(step, "task.failed").task_id == "a1"


def test_a_read_whose_answer_is_too_large_fails() -> None:
    found = world()
    found.start({"tasks": [parse("a1")]})
    outcome = _outcome(found.call_of("a1"), ok=True)
    step = check(found, Input(OUTCOMES, 3, 99, found.time_ms, "local", "s1", outcome))
    assert [event.type for event in step.events] == ["task.failed", "run.failed"]
    error = data_of(step, "task.failed").error
    assert (error.code, error.type) == ("EVENTS_TOO_LARGE", "VALIDATION")


def test_an_answer_too_large_that_a_dead_session_does_not_wait_for_leaves_it_as_it_is() -> None:
    found = world()
    found.start({"tasks": [parse("a1")]})
    found.answer(found.call_of("a1"))
    later_ms = found.time_ms + found.catalog.policy.session_ttl_ms + 1
    source = Input(OUTCOMES, 3, 99, later_ms, "local", "s1", _outcome("call_x", ok=True))
    step = fail_too_large(found.session, source, found.catalog, found.log_end)
    assert step == Step((), found.session, (), ())


@pytest.mark.parametrize("known", [True, False])
def test_a_command_too_large_is_rejected(known: bool) -> None:
    found = world()
    if known:
        found.start({"tasks": [parse("a1")]})
    data = RunStart(workflow=Workflow.model_validate({"tasks": [parse("a1")]}))
    command = Command(type="run.start", command_id="c9", session_id="s1", run_id="run_9", data=data)
    step = check(found, Input(COMMANDS, 3, 99, found.time_ms, "local", "s1", command))
    assert [event.type for event in step.events] == ["command.rejected"]
    assert data_of(step, "command.rejected").error["code"] == "EVENTS_TOO_LARGE"
    assert step.events[0].command_id == "c9"


def test_a_command_that_nobody_can_read_and_too_large_is_rejected() -> None:
    source = Input(COMMANDS, 3, 1, 0, "local", "s1", Unreadable("X", "y", "c1", "z" * 1_000))
    step = fail_too_large(None, source, catalog(), 0)
    assert data_of(step, "command.rejected").error["code"] == "EVENTS_TOO_LARGE"
    assert size(step) < 2_000


def test_an_answer_that_nobody_waits_for_changes_nothing() -> None:
    source = Input(OUTCOMES, 3, 1, 0, "local", "s1", _outcome("call_x", ok=True))
    assert fail_too_large(None, source, catalog(), 0) == Step((), None, (), ())
