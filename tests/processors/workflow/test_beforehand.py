"""A person is asked about all calls of a run before any of them begins."""

from __future__ import annotations

from typing import Any

import pytest

from pml.processors.workflow import Step, fail_too_large
from pml.processors.workflow.inputs import Input
from tests.processors.session_world import COMMANDS, SessionWorld, catalog, data_of

LIST = {"id": "n1", "tool": "files:list_dir", "arguments": {"path": "docs"}}
KNOWN = {"id": "n2", "tool": "files:delete_file", "arguments": {"path": "a.md"}, "depends_on": ["n1"]}
FIRST = {"type": "reference", "expression": "n1.first"}
COMPUTED = {"id": "n3", "tool": "files:delete_file", "arguments": {"path": FIRST}}


def world(**policy: Any) -> SessionWorld:
    return SessionWorld(catalog=catalog(approve="before", **policy))


def decide(at: SessionWorld, decision: str = "approve", **said: Any) -> Step:
    asked: Any = at.of_type("approval.requested")[-1].data
    principal = said.pop("principal", "person:ada")
    data = {"approval_id": asked.approval_id, "decision": decision, **said}
    return at.send("approval.decide", data=data, principal=principal)


def test_nothing_begins_before_the_answer_and_everything_that_was_shown_does_after_it() -> None:
    at = world()
    asked = data_of(at.start({"tasks": [LIST, KNOWN]}), "approval.requested")
    assert [(call.task_id, call.arguments) for call in asked.calls] == [("n2", {"path": "a.md"})]
    assert (asked.task_id, asked.tool, asked.arguments) == ("n2", "files:delete_file", {"path": "a.md"})
    assert at.session_run().status == "waiting"
    assert not at.open_calls
    decide(at)
    at.answer(at.call_of("n1"))
    assert at.call_of("n2")
    assert len(at.of_type("approval.requested")) == 1


@pytest.mark.parametrize(("computed", "requests"), [(False, 2), (True, 1)])
def test_arguments_that_were_not_known_are_asked_about_again_unless_the_yes_was_for_them(
    computed: bool, requests: int
) -> None:
    at = world()
    asked = data_of(at.start({"tasks": [LIST, COMPUTED]}), "approval.requested")
    (call,) = asked.calls
    assert (call.arguments_hash, call.arguments, call.computed) == (None, {}, {"path": "n1.first"})
    decide(at, computed=computed)
    at.answer(at.call_of("n1"), {"first": "a.md"})
    assert len(at.of_type("approval.requested")) == requests
    assert bool(at.open_calls) is computed


def test_without_a_tool_that_needs_a_word_nobody_is_asked() -> None:
    at = world()
    at.start({"tasks": [LIST]})
    assert "approval.requested" not in at.types()
    assert at.call_of("n1")


@pytest.mark.parametrize("decision", ["reject", "time"])
def test_a_no_ends_the_run_before_it_has_begun_and_a_retry_asks_again(decision: str) -> None:
    at = world()
    at.start({"tasks": [LIST, KNOWN]})
    step = at.due() if decision == "time" else decide(at, "reject", reason="no")
    code = "APPROVAL_EXPIRED" if decision == "time" else "APPROVAL_REJECTED"
    assert data_of(step, "run.failed").error["code"] == code
    assert [event.data.task_id for event in step.events if event.type == "task.skipped"] == ["n1", "n2"]  # type: ignore[attr-defined]
    assert not at.open_calls
    assert data_of(at.send("run.retry"), "approval.requested").calls
    assert at.session_run().status == "waiting"


def test_what_was_approved_for_a_run_that_failed_is_asked_about_again_when_it_is_retried() -> None:
    at = world()
    at.start({"tasks": [LIST, KNOWN]})
    decide(at)
    at.answer(at.call_of("n1"), code="NOT_FOUND")
    again = data_of(at.send("run.retry"), "approval.requested")
    assert [call.task_id for call in again.calls] == ["n2"]
    decide(at)
    at.answer(at.call_of("n1"))
    assert at.call_of("n2")


@pytest.mark.parametrize(
    ("policy", "options", "before"),
    [
        ("each", {}, False),
        ("each", {"approve": "before"}, True),
        ("before", {}, True),
        ("before", {"approve": "each"}, False),
    ],
)
def test_a_workflow_says_when_a_person_is_asked_else_the_setting(
    policy: str, options: dict[str, str], before: bool
) -> None:
    at = SessionWorld(catalog=catalog(approve=policy))
    at.start({"options": options, "tasks": [LIST, KNOWN]})
    assert ("approval.requested" in at.types()) is before
    assert bool(at.open_calls) is not before


@pytest.mark.parametrize("principal", ["agent:a", "local"])
def test_only_a_person_answers(principal: str) -> None:
    at = world()
    at.start({"tasks": [LIST, KNOWN]})
    step = decide(at, principal=principal)
    assert data_of(step, "command.rejected").error["code"] == "PERSON_NEEDED"
    assert at.session_run().status == "waiting"


def test_four_eyes_are_wanted_here_too() -> None:
    at = world(four_eyes=True)
    at.start({"tasks": [LIST, KNOWN]}, principal="person:ada")
    assert data_of(decide(at), "command.rejected").error["code"] == "FOUR_EYES"
    assert decide(at, principal="person:bob").events[0].type == "approval.granted"


def test_an_answer_counts_once() -> None:
    at = world()
    at.start({"tasks": [LIST, KNOWN]})
    decide(at)
    assert data_of(decide(at, "reject"), "command.rejected").error["code"] == "NOT_WAITING"


def test_a_question_that_is_not_due_yet_stays() -> None:
    at = world()
    asked = data_of(at.start({"tasks": [LIST, KNOWN]}), "approval.requested")
    assert at.reach("approval", asked.approval_id, at.time_ms).events == ()


def test_a_branch_that_is_closed_is_not_asked_about_when_a_run_is_replanned() -> None:
    at = world()
    tasks = [LIST, {**KNOWN, "condition": {"node": "d1", "outcome": "true"}}]
    workflow = {"tasks": tasks, "decisions": [{"id": "d1", "expression": "n1.first == 'b'"}]}
    asked = data_of(at.start(workflow), "approval.requested")
    assert asked.calls[0].conditional is True
    decide(at)
    at.answer(at.call_of("n1"), {"first": "a"})
    assert at.session_run().status == "completed"


def test_an_input_whose_events_are_too_large_withdraws_the_question() -> None:
    at = world()
    asked = data_of(at.start({"tasks": [LIST, KNOWN]}), "approval.requested")
    at.time_ms += 400_000
    assert at.session is not None
    reached = Input(COMMANDS, 3, 99, at.time_ms, "local", "s1", at_deadline(at, asked.approval_id))
    step = fail_too_large(at.session, reached, at.catalog, at.log_end)
    assert [event.type for event in step.events] == ["approval.expired", "run.failed"]


def at_deadline(at: SessionWorld, approval_id: str) -> Any:
    from pml.schemas.commands import Command, DeadlineReach

    data = DeadlineReach(kind="approval", target=approval_id, attempt=0, due_at_ms=at.time_ms)
    return Command(type="deadline.reach", command_id="due", session_id="s1", run_id="run_1", data=data)


LOOP = """\
async def main():
    names = await mcp.files.list_dir(path="docs")
    while names:
        await mcp.files.delete_file(path=names.pop())
"""


@pytest.mark.parametrize(("computed", "begun"), [(False, False), (True, True)])
def test_a_plain_yes_lets_a_program_in_the_sandbox_begin_and_no_more(computed: bool, begun: bool) -> None:
    at = world()
    at.program(LOOP, "python")
    asked = data_of(at.analyse(), "approval.requested")
    (call,) = asked.calls
    assert (call.task_id, call.tool, call.arguments, call.arguments_hash) == (
        *("", "files:delete_file"),
        *(None, None),
    )
    assert not at.open_calls
    decide(at, computed=computed)
    at.step(calls=[("files:delete_file", {"path": "a.md"})])
    assert bool(at.open_calls) is begun
    assert len(at.of_type("approval.requested")) == (1 if begun else 2)


def test_a_program_without_such_a_tool_begins_unasked() -> None:
    at = world()
    at.program(LOOP.replace("delete_file", "write_file"), "python")
    at.analyse()
    assert "approval.requested" not in at.types()
    assert at.open_calls


def test_a_task_of_an_old_name_needs_a_word_of_its_own() -> None:
    at = world()
    at.start({"options": {"decision_points": ["n1"]}, "tasks": [LIST, COMPUTED]})
    decide(at, computed=True)
    at.answer(at.call_of("n1"), {"first": "a.md"})
    at.send("run.replan", data={"tasks": [{**COMPUTED, "arguments": {"path": "b.md"}}]})
    assert not at.open_calls
    assert at.session_run().waits.consents == {}
    assert data_of(decide(at), "task.started").arguments == {"path": "b.md"}
