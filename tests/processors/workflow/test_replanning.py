"""What a replan refuses to lose sight of."""

from __future__ import annotations

import pytest

from tests.processors.session_world import SessionWorld, data_of
from tests.processors.workflow.test_decide import task


@pytest.mark.parametrize("tool", ["files:parse", "files:delete_file"])
def test_a_run_is_not_replanned_around_a_task_that_runs_or_waits_for_a_person(tool: str) -> None:
    """A task that was begun again holds its layer up while one of the next layer is at work."""
    world = SessionWorld()
    first = [task("w", "1", tool="files:write_file"), task("x", "2", tool="files:parse")]
    second = [task("y", "3", "x", tool=tool), task("z", "4", "w", tool="files:parse")]
    world.start({"tasks": [*first, *second], "options": {"per_layer_validation": True}})
    world.answer(world.call_of("w"), code="TIMEOUT")
    world.answer(world.call_of("x"))
    world.send("run.continue")
    world.send("task.resolve", data={"task_id": "w", "resolution": "retry"})
    world.answer(world.call_of("w"))
    assert world.types()[-1] == "decision.required"
    error = data_of(world.send("run.replan", data={"tasks": [task("n", "5")]}), "command.rejected").error
    assert (error["code"], error["message"].partition(" of ")[0]) == ("NOT_WAITING", "y")
