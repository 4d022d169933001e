"""What pauses and decisions leave behind in a run that is taken up again."""

from __future__ import annotations

from tests.processors.session_world import SessionWorld


def test_a_retried_run_asks_again_when_the_same_task_fails_again() -> None:
    world = SessionWorld()
    world.start({"tasks": [{"id": "a", "tool": "files:parse"}], "options": {"decision_points": "on_error"}})
    for _ in range(2):
        world.answer(world.call_of("a"), code="NOT_FOUND")
        world.send("run.continue")
        world.send("run.retry")
    assert world.types().count("decision.required") == world.types().count("run.retried") == 2
