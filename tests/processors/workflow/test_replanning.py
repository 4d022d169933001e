"""What a replan refuses to lose sight of."""

from __future__ import annotations

from typing import Any

import pytest

from pml.schemas.workflow import DEPTH_MAX, LAYER_TASKS_MAX, TASKS_MAX
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


def two_layers_done() -> SessionWorld:
    """A run that waits behind its second layer; one task is still to come."""
    world = SessionWorld()
    tasks = [{"id": name, "tool": "files:parse"} for name in ("a", "b", "c", "d")]
    for before, after in (("a", "c"), ("c", "d")):
        next(item for item in tasks if item["id"] == after)["depends_on"] = [before]  # type: ignore[assignment]
    world.start({"tasks": tasks, "options": {"per_layer_validation": True}})
    world.answer(world.call_of("a"))
    world.answer(world.call_of("b"))
    world.send("run.continue")
    world.answer(world.call_of("c"))
    return world


def chain(length: int) -> list[dict[str, Any]]:
    names = [f"n{number}" for number in range(length)]
    return [
        {"id": name, "tool": "files:parse", "depends_on": names[number - 1 : number] if number else []}
        for number, name in enumerate(names)
    ]


def replanned(tasks: list[dict[str, Any]]) -> str:
    """The code of the refusal of such a plan, or nothing."""
    first = two_layers_done().send("run.replan", data={"tasks": tasks}).events[0]
    return first.data.error["code"] if first.type == "command.rejected" else ""


def test_a_replanned_run_is_no_deeper_than_any_other() -> None:
    assert replanned(chain(DEPTH_MAX - 2)) == ""
    assert replanned(chain(DEPTH_MAX - 1)) == "TOO_DEEP"


def test_a_replanned_run_has_no_more_tasks_than_any_other() -> None:
    """Those that stay are counted, the one that is dropped is not."""
    tasks: list[dict[str, Any]] = [
        {"id": f"n{number}", "tool": "files:parse", "depends_on": [f"n{number - LAYER_TASKS_MAX}"]}
        for number in range(TASKS_MAX - 2)
    ]
    for item in tasks[:LAYER_TASKS_MAX]:
        item["depends_on"] = []
    assert replanned(tasks[:-1]) == ""
    assert replanned(tasks) == "TOO_MANY_TASKS"
