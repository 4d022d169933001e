"""`needs` asks for every value that a decision reads; the session of these tests checks that each time."""

from __future__ import annotations

from tests.processors.session_world import SessionWorld, catalog, data_of
from tests.processors.workflow.test_decide import reference, task


def test_what_a_speculation_read_is_asked_for_after_its_task_has_ended() -> None:
    world = SessionWorld()
    late, other = task("c", reference("a.next"), "b"), task("d", "4", "b", tool="time:now")
    world.start({"tasks": [task("a", "1"), task("b", "2"), late, other]})
    world.answer(world.call_of("a"), {"next": "3"})
    world.catalog = catalog(speculation_mode="off")
    world.answer(world.call_of("b"))
    real = next(call for call in world.open_calls.values() if call.task_id == "c" and not call.speculative)
    world.answer(real.call_id, code="NOT_FOUND")
    ended = data_of(world.answer(world.call_of("d")), "speculation.ended")
    assert (ended.task_id, ended.arguments) == ("c", {"path": "3"})


def test_what_is_read_early_through_a_result_that_is_gone_is_asked_for_until_it_ends() -> None:
    """Another run has joined it, so it goes on when the result that it was taken from expires."""
    short = {"scope": "readonly", "approval": "auto", "ttl_s": 1}
    world = SessionWorld(catalog=catalog({"files:list_dir": short}, speculation_depth=2))
    early = task("early", reference("quick.first"), "slow", tool="files:list_dir")
    deep = task("deep", reference("early.first"))
    world.start({"tasks": [task("quick", "1"), task("slow", "2"), early, deep]})
    world.answer(world.call_of("quick"), {"first": "docs"})
    world.answer(world.call_of("early"), {"first": "3"})
    world.start({"tasks": [task("other", "3")]}, "run_2")
    world.time_ms += 2_000
    expired = world.start({"tasks": [task("another", "9")]}, "run_3")
    assert data_of(expired, "speculation.ended").task_id == "early"
    ended = data_of(world.answer(world.call_of("other")), "speculation.ended")
    assert (ended.task_id, ended.fate, ended.arguments) == ("deep", "served", {"path": "3"})


def test_what_a_decision_reads_is_asked_for() -> None:
    world = SessionWorld()
    late = task("c", "3", condition=[{"node": "d", "outcome": "true"}])
    decision = {"id": "d", "expression": "a.size > b.size"}
    world.start({"tasks": [task("a", "1"), task("b", "2"), late], "decisions": [decision]})
    world.answer(world.call_of("a"), {"size": 2})
    assert data_of(world.answer(world.call_of("b"), {"size": 1}), "branch.taken").outcome == "true"


def test_what_a_late_answer_lets_begin_is_asked_for() -> None:
    world = SessionWorld(catalog=catalog(speculation_mode="off"))
    write = task("write", "2", tool="files:write_file")
    after = task("after", reference("a.next"), "write")
    world.start({"tasks": [task("a", "1"), write, after, task("long", "4", "a")]})
    world.answer(world.call_of("a"), {"next": "3"})
    call_id = world.call_of("write")
    world.answer(call_id, code="TIMEOUT")
    step = world.answer(call_id, {"written": "2"})
    assert [call.arguments for call in step.calls] == [{"path": "3"}]
