"""How calls end that nobody, or somebody else, waits for."""

from __future__ import annotations

from tests.processors.session_world import SessionWorld, catalog, data_of
from tests.processors.workflow.test_decide import FORK, reference, task


def test_a_joined_call_outlives_the_plan_that_it_was_begun_for() -> None:
    """Its own run has no such task any more, so nobody can tell its arguments."""
    world = SessionWorld()
    tasks = [task("a", "1"), task("c", reference("a.next"), "a")]
    world.start({"tasks": tasks, "options": {"per_layer_validation": True}})
    world.answer(world.call_of("a"), {"next": "3"})
    world.start({"tasks": [task("x", "3")]}, "run_2")
    world.send("run.replan", data={"tasks": [task("n", "5", tool="files:parse")]})
    ended = data_of(world.answer(world.call_of("x"), {"text": "three"}), "speculation.ended")
    assert (ended.task_id, ended.fate, ended.arguments) == ("c", "served", None)


def test_a_run_that_is_stopped_gives_up_what_it_verifies() -> None:
    world = SessionWorld(catalog=catalog(verified_share=1.0))
    world.start({"tasks": [*FORK["tasks"], task("d", "4", "c", tool="files:write_file")]})
    world.answer(world.call_of("a"), {"next": "3"})
    world.answer(world.call_of("c"), {"text": "three"})
    verifying = data_of(world.answer(world.call_of("b")), "speculation.verifying")
    step = world.send("run.abort")
    assert data_of(step, "speculation.verified").outcome == "unanswered"
    assert [cancel.call_id for cancel in step.cancels] == [verifying.call_id]
