"""The calls that must be running, found again from the state alone."""

from __future__ import annotations

import pytest

from pml.processors.workflow import GoneCall, call_needs, calls
from pml.schemas.calls import CallRun
from pml.schemas.codec import decode_call, encode
from tests.processors.session_world import KEY, SessionWorld, catalog, data_of
from tests.processors.speculation.test_candidates import LIST, READ, SEARCH

PARSE = {"tool": "files:parse"}


def test_an_approval_is_for_the_call_that_was_asked_about_and_not_for_one_that_runs_early() -> None:
    world = SessionWorld()
    late = {"id": "late", **READ, "depends_on": ["quick", "slow"]}
    world.start({"tasks": [{"id": "quick", **LIST}, {"id": "slow", **SEARCH}, late]})
    world.answer(world.call_of("quick"), {"first": "x"})
    world.catalog = catalog({READ["tool"]: {"scope": "readonly", "approval": "hil"}})
    world.answer(world.call_of("slow"), {"matches": []})
    assert world.session is not None
    assert world.session.runs["run_1"].task("late").awaits_approval
    (early,) = calls(world.session, world.payloads, KEY)
    assert isinstance(early, CallRun)
    assert (early.speculative, early.approval_id) == (True, None)


@pytest.mark.parametrize("lost", ["context", "plan"])
def test_a_call_of_a_later_plan_is_gone_where_that_plan_or_the_context_of_its_run_is(lost: str) -> None:
    world = SessionWorld()
    options = {"options": {"per_layer_validation": True}}
    world.start({"tasks": [{"id": "a", **PARSE}, {"id": "b", **PARSE, "depends_on": ["a"]}], **options})
    world.answer(world.call_of("a"))
    world.send("run.replan", data={"tasks": [{"id": "c", **PARSE}]})
    assert world.session is not None
    run = world.session.runs["run_1"]
    world.lose(run.payload if lost == "context" else run.replans[0])
    assert calls(world.session, world.payloads, KEY) == [GoneCall(world.call_of("c"), "local", "s1")]


def test_a_call_that_reads_one_of_two_results_needs_only_the_one_that_there_is() -> None:
    world = SessionWorld()
    decisions = [{"id": "d1", "expression": "a.count > 0"}]
    other = {"id": "b", **PARSE, "condition": [{"node": "d1", "outcome": "true"}]}
    either = {"text": {"type": "reference", "expression": "b.parsed|a.parsed"}}
    last = {"id": "c", **PARSE, "arguments": either}
    world.start({"tasks": [{"id": "a", **PARSE}, other, last], "decisions": decisions})
    world.answer(world.call_of("a"), {"count": 0, "parsed": "x"})
    assert world.open_calls[world.call_of("c")].arguments == {"text": "x"}
    assert world.session is not None
    assert call_needs(world.session) == set(world.payloads)


def test_what_is_called_again_for_a_run_that_was_replanned_and_has_ended_is_found_in_its_newest_plan() -> (
    None
):
    world = SessionWorld(catalog=catalog(verified_share=1.0))
    options = {"options": {"per_layer_validation": True}}
    world.start({"tasks": [{"id": "a", **PARSE}, {"id": "b", **PARSE, "depends_on": ["a"]}], **options})
    world.answer(world.call_of("a"))
    late = {"id": "late", **READ, "depends_on": ["quick", "slow"]}
    world.send("run.replan", data={"tasks": [{"id": "quick", **LIST}, {"id": "slow", **SEARCH}, late]})
    world.answer(world.call_of("quick"), {"first": "x"})
    world.answer(world.call_of("late"), {"text": "a"})
    world.answer(world.call_of("slow"), {"matches": []})
    world.send("run.continue")
    assert world.session is not None
    assert (world.session.runs["run_1"].status, world.session.runs["run_1"].graph) == ("completed", None)
    (again,) = calls(world.session, world.payloads, KEY)
    assert isinstance(again, CallRun)
    assert (again.call_id, again.arguments) == (next(iter(world.session.verifications)), READ["arguments"])


def test_the_question_about_a_lost_write_is_found_in_the_plan_of_that_write() -> None:
    verify = {"tool": READ["tool"], "arguments": {"path": "{path}"}, "done": "true", "after_s": 1}
    entry = {"scope": "filesystem", "approval": "auto", "verify": verify}
    world = SessionWorld(catalog=catalog({"files:write_file": entry}))
    write = {"id": "w", "tool": "files:write_file", "arguments": {"path": "a.md"}}
    world.start({"tasks": [write], "options": {"decision_points": "on_error"}})
    world.answer(world.call_of("w"), code="TIMEOUT")
    world.send("run.replan", data={"tasks": [{"id": "c", **PARSE}]})
    world.due()
    assert world.session is not None
    found = {
        call.tool: call for call in calls(world.session, world.payloads, KEY) if isinstance(call, CallRun)
    }
    assert found[READ["tool"]].arguments == {"path": "a.md"}


def test_what_is_called_again_for_a_task_that_a_replan_left_is_found_in_the_plan_of_that_task() -> None:
    """`late` was skipped behind a lost write; its answer came after all, and with it the turn of `late`.

    The newest plan is looked at first, whether it can still be had or not.
    """
    world = SessionWorld(catalog=catalog(verified_share=1.0))
    tasks = [{"id": "w", "tool": "files:write_file", "arguments": {"path": "b.md"}}, {"id": "o", **PARSE}]
    tasks += [{"id": "late", **READ, "depends_on": ["w"]}, {"id": "p", **PARSE, "depends_on": ["o"]}]
    world.start({"tasks": tasks, "options": {"decision_points": "on_error"}})
    write = world.call_of("w")
    world.answer(world.call_of("o"))
    world.answer(write, code="TIMEOUT")
    world.send("run.continue")
    for _ in ("begun early", "called once more"):
        world.answer(world.call_of("p"), code="NOT_FOUND")
    world.send("run.replan", data={"tasks": [{"id": "c", "tool": "time:now"}]})
    begun_early(world, "run_2")
    world.answer(write, {"ok": True})
    world.answer(world.call_of("c"))
    assert world.session is not None
    run = world.session.runs["run_1"]
    assert (run.status, run.graph, len(run.replans)) == ("completed", None, 1)
    (call_id,) = world.session.verifications
    for lost in (("nothing", 0, 0), run.replans[0]):
        world.lose(lost)
        found = {call.call_id: call for call in calls(world.session, world.payloads, KEY)}
        again = found[call_id]
        assert isinstance(again, CallRun)
        assert (again.run_id, again.task_id, again.arguments) == ("run_1", "late", READ["arguments"])


def begun_early(world: SessionWorld, run_id: str) -> None:
    """A run whose read of `a.md` began early, and has its result."""
    late = {"id": "early", **READ, "depends_on": ["quick", "slow"]}
    world.start({"tasks": [{"id": "quick", **LIST}, {"id": "slow", **SEARCH}, late]}, run_id)
    world.answer(world.call_of("quick"), {"first": "x"})
    world.answer(world.call_of("early"), {"text": "a"})


def sent(world: SessionWorld) -> list[CallRun | GoneCall]:
    """What has to be running."""
    assert world.session is not None
    return calls(world.session, world.payloads, KEY)


def test_a_write_that_may_have_happened_is_not_begun_again() -> None:
    world = SessionWorld()
    write = {"id": "w", "tool": "files:write_file", "arguments": {"path": "a.md"}}
    world.start({"tasks": [write], "options": {"decision_points": "on_error"}})
    assert [call.call_id for call in sent(world)] == [world.call_of("w")]
    world.answer(world.call_of("w"), code="TIMEOUT")
    assert world.types()[-1] == "decision.required"
    assert sent(world) == []


def test_a_call_that_failed_is_not_running_until_its_next_attempt() -> None:
    world = SessionWorld(
        catalog=catalog({"files:parse": {"scope": "minimal", "approval": "auto", "retryable": True}})
    )
    world.start({"tasks": [{"id": "a", **PARSE}]})
    world.answer(world.call_of("a"), code="NETWORK", retryable=True)
    assert sent(world) == []
    world.due()
    assert [call.call_id for call in sent(world)] == [world.call_of("a")]


def test_a_call_whose_arguments_are_others_now_is_gone() -> None:
    """Whatever lies where its command lay: nobody calls with what was not recorded, or approved."""
    world = SessionWorld()
    path = {"path": {"type": "parameter", "parameter_name": "p"}}
    world.start({"tasks": [{"id": "a", **READ, "arguments": path}]}, context={"p": "a.md"})
    assert world.session is not None
    address = world.session.runs["run_1"].payload
    world.payloads[address] = world.payloads[address].model_copy(update={"context": {"p": "b.md"}})
    assert sent(world) == [GoneCall(world.call_of("a"), "local", "s1")]


def test_the_bridge_reads_a_call_as_it_was_meant() -> None:
    world = SessionWorld()
    (call,) = world.start({"tasks": [{"id": "a", **READ}]}).calls
    read = decode_call(encode(call))
    assert read == call == CallRun.model_validate(call.model_dump())


def test_the_question_about_an_approved_write_has_no_approval_of_its_own() -> None:
    verify = {"tool": READ["tool"], "arguments": {"path": "{path}"}, "done": "true", "after_s": 1}
    world = SessionWorld(
        catalog=catalog({"files:write_file": {"scope": "filesystem", "approval": "hil", "verify": verify}})
    )
    write = {"id": "w", "tool": "files:write_file", "arguments": {"path": "a.md"}}
    asked = data_of(world.start({"tasks": [write]}), "approval.requested").approval_id
    (call,) = world.send("approval.decide", data={"approval_id": asked, "decision": "approve"}).calls
    assert call.approval_id == asked
    world.answer(call.call_id, code="TIMEOUT")
    (asking,) = world.due().calls
    assert (asking.tool, asking.approval_id) == (READ["tool"], None)
    assert sent(world) == [asking]
