"""Which hits are called again, and what is learned from the answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pml.processors.workflow.verification import chosen
from pml.schemas.calls import CallEnded
from tests.processors.session_world import SessionWorld, catalog, data_of
from tests.processors.speculation.test_candidates import workflow
from tests.processors.speculation.test_candidates import world as likely
from tests.processors.workflow.test_decide import READ, reference, speculating, task
from tests.processors.workflow.test_internal import broken


def verifying() -> SessionWorld:
    return speculating(SessionWorld(catalog=catalog(verified_share=1.0)))


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_the_share_that_is_asked_for_is_verified(share: float) -> None:
    session = speculating().session
    assert session is not None
    (entry,) = session.speculations.values()
    ids = (f"call_{number * 16**12 // 1_000:012x}beefe59058bf" for number in range(1_000))
    assert sum(chosen(replace(entry.call, call_id=name), share) for name in ids) == share * 1_000


def test_a_call_that_was_sure_to_be_made_teaches_no_threshold_when_it_diverges() -> None:
    world = verifying()
    world.answer(world.call_of("c"), {"text": "three"})
    world.answer(world.call_of("b"))
    diverged = data_of(world.answer(world.call_of("c"), {"text": "four"}), "speculation.diverged")
    assert (diverged.confidence, diverged.context) == (1.0, None)


def test_a_hit_whose_arguments_are_gone_is_not_verified() -> None:
    world = verifying()
    world.answer(world.call_of("b"))
    assert world.session is not None
    world.lose(world.session.runs["run_1"].payload)
    step = world.answer(world.call_of("c"), {"text": "three"})
    assert data_of(step, "task.completed").served_by == "joined"
    assert (step.events[-1].type, step.calls) == ("run.completed", ())


def test_a_hit_is_not_verified_once_nothing_may_run_early() -> None:
    world = verifying()
    world.answer(world.call_of("b"))
    world.catalog = catalog(verified_share=1.0, speculation_mode="off")
    step = world.answer(world.call_of("c"), {"text": "three"})
    assert data_of(step, "task.completed").served_by == "joined"
    assert (step.events[-1].type, step.calls) == ("run.completed", ())


@pytest.mark.parametrize("change", [{"approval": "hil"}, {"approval": "auto", "effect": "write"}])
def test_a_hit_of_a_tool_that_may_not_read_by_itself_any_more_is_not_verified(change: dict[str, str]) -> None:
    world = verifying()
    world.answer(world.call_of("b"))
    world.catalog = catalog({READ: {"scope": "filesystem"} | change}, verified_share=1.0)
    step = world.answer(world.call_of("c"), {"text": "three"})
    assert data_of(step, "task.completed").served_by == "joined"
    assert (step.events[-1].type, step.calls) == ("run.completed", ())


def test_a_tool_that_fails_when_it_is_called_again_says_nothing() -> None:
    world = verifying()
    world.answer(world.call_of("c"), {"text": "three"})
    world.answer(world.call_of("b"))
    step = world.outcome(broken(world.call_of("c"), {"text": "th"}))
    assert data_of(step, "speculation.verified").outcome == "unanswered"


def test_what_is_called_again_is_waited_for_while_others_are_stopped_or_write_elsewhere() -> None:
    world = verifying()
    world.answer(world.call_of("c"), {"text": "three"})
    world.start({"tasks": [task("x", "9", tool="time:now")]}, "run_2")
    verifying_call = data_of(world.answer(world.call_of("b")), "speculation.verifying").call_id
    world.send("run.abort", "run_2")
    world.start({"tasks": [task("w", "4", tool="files:write_file")]}, "run_3")
    assert world.reach("speculation", verifying_call, world.time_ms).events == ()
    assert world.session is not None
    assert set(world.session.verifications) == {verifying_call}


def again(world: SessionWorld) -> str:
    """`c` was served early; the call that verifies it."""
    world.answer(world.call_of("c"), {"text": "three"})
    world.answer(world.call_of("b"))
    return world.call_of("c")


def test_a_tool_that_is_called_again_and_says_nothing_has_not_answered() -> None:
    world = verifying()
    outcome = CallEnded(call_id=again(world), tenant="local", session_id="s1", status="ok")
    assert data_of(world.outcome(outcome), "speculation.verified").outcome == "unanswered"


def test_a_tool_that_is_called_again_has_its_time_to_answer() -> None:
    world = verifying()
    call_id = again(world)
    assert world.session is not None
    deadline_ms = world.session.verifications[call_id].call.deadline_ms
    world.time_ms = deadline_ms - 1
    assert world.reach("speculation", call_id, world.time_ms).events == ()
    assert data_of(world.due(), "speculation.verified").outcome == "unanswered"
    assert world.time_ms == deadline_ms


def test_a_hit_that_read_one_of_two_results_is_verified_with_that_one() -> None:
    world = SessionWorld(catalog=catalog(verified_share=1.0))
    other = task("o", "2", condition=[{"node": "d", "outcome": "true"}])
    either = task("c", reference("o.next|a.next"), "b", "o")
    tasks = [task("a", "1"), other, task("b", "9", "a"), either]
    world.start({"tasks": tasks, "decisions": [{"id": "d", "expression": "a.count > 0"}]})
    world.answer(world.call_of("a"), {"next": "3", "count": 0})
    world.answer(world.call_of("c"), {"text": "three"})
    step = world.answer(world.call_of("b"))
    assert data_of(step, "task.completed").task_id == "b"
    assert list(data_of(step, "speculation.verifying").reads) == ["a"]
    assert [call.arguments for call in step.calls] == [{"path": "3"}]


def test_a_call_that_was_likely_to_be_made_teaches_its_threshold_when_it_diverges() -> None:
    world = likely({"d1": (27, 0)}, verified_share=1.0)
    world.start(workflow({"d1": "true"}))
    world.answer(world.call_of("quick"), {"first": "a.md"})
    world.answer(world.call_of("late"), {"text": "a"})
    world.answer(world.call_of("slow"), {"count": 1})
    diverged = data_of(world.answer(world.call_of("late"), {"text": "b"}), "speculation.diverged")
    assert diverged.confidence < 1
    assert diverged.context.workflow_type == "default"
