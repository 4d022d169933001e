"""What a session's state says of itself: how long it lives, and what of a run was not begun yet."""

from __future__ import annotations

import pytest

from tests.processors.session_world import SessionWorld, catalog
from tests.processors.workflow.test_decide import speculating, task

LATER_MS = 2_000
SHORT = {"session_ttl_ms": 1_000}


def test_a_session_lives_while_one_of_its_runs_goes_on() -> None:
    world = SessionWorld(catalog=catalog(**SHORT))
    for number in (1, 2):
        world.start({"tasks": [task("a", "1")], "options": {"speculation": "off"}}, f"run_{number}")
    world.answer(world.call_of("a", "run_1"))
    world.time_ms += LATER_MS
    assert world.answer(world.call_of("a", "run_2")).events[-1].type == "run.completed"


def test_a_session_lives_while_a_hit_is_called_again() -> None:
    world = speculating(SessionWorld(catalog=catalog(verified_share=1.0, **SHORT)))
    world.answer(world.call_of("c"), {"text": "three"})
    assert world.answer(world.call_of("b")).events[-2].type == "run.completed"
    world.time_ms += LATER_MS
    step = world.answer(world.call_of("c"), {"text": "three"})
    assert [event.type for event in step.events] == ["speculation.verified"]


@pytest.mark.parametrize("tool", ["files:parse", "files:delete_file"])
def test_a_task_that_waits_for_its_next_attempt_or_for_a_person_is_not_begun_anew(tool: str) -> None:
    """Where a write before it is begun again, all layers are gone through once more."""
    rule = {"scope": "minimal", "approval": "auto", "retryable": {"attempts": 2, "backoff_ms": 60_000}}
    world = SessionWorld(catalog=catalog({"files:parse": rule}))
    first = [task("w", "1", tool="files:write_file"), task("x", "2", tool="files:parse")]
    world.start({"tasks": [*first, task("y", "3", "x", tool=tool)]})
    world.answer(world.call_of("w"), code="TIMEOUT")
    world.answer(world.call_of("x"))
    if tool == "files:parse":
        world.answer(world.call_of("y"), code="NETWORK", retryable=True)
    world.send("task.resolve", data={"task_id": "w", "resolution": "retry"})
    assert [event.type for event in world.answer(world.call_of("w")).events] == ["task.completed"]
