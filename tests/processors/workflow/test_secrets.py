"""No secret reaches an event, wherever in a workflow, a result or an error somebody put it."""

from __future__ import annotations

from typing import Any

import pytest

from pml.schemas.codec import encode
from tests.processors.session_world import SessionWorld

TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
TASK = {"id": "n1", "tool": "files:parse"}


def workflow(**fields: Any) -> dict[str, Any]:
    return {"tasks": [TASK | fields]}


def decided(expression: str, outcome: str = "true") -> dict[str, Any]:
    condition = {"node": "d", "outcome": outcome}
    return {
        "tasks": [TASK, TASK | {"id": "n2", "condition": condition}],
        "decisions": [{"id": "d", "expression": expression}],
    }


def kept(world: SessionWorld) -> str:
    return "\n".join(encode(event).decode() for event in world.events)


@pytest.mark.parametrize(
    "value",
    [
        workflow(arguments={"text": TOKEN}),
        workflow(arguments={"text": {"deep": [{"er": f"Bearer {TOKEN}"}]}}),
        workflow(arguments={TOKEN: "x"}),
        workflow(arguments={"text": {"type": "parameter", "parameter_name": TOKEN}}),
        {
            "tasks": [
                TASK,
                TASK
                | {"id": "n2", "arguments": {"x": {"type": "reference", "expression": f"n1['{TOKEN}']"}}},
            ]
        },
        workflow() | {"context": {"a": TOKEN}},
        workflow() | {"context": {TOKEN: "a"}},
        workflow() | {"intent": f"use {TOKEN}"},
        workflow() | {"name": TOKEN},
        workflow() | {"workflow_type": TOKEN},
        workflow(tool=f"files:{TOKEN}"),
        workflow(tool=f"{TOKEN}:parse"),
        decided(f"n1.x == '{TOKEN}'"),
        decided(f"n1['{TOKEN}'] > 1"),
        decided("n1.x", f"case:{TOKEN}"),
        decided(f"n1.x ? '{TOKEN}'"),
    ],
)
def test_a_secret_in_a_workflow_stays_out_of_the_log(value: dict[str, Any]) -> None:
    world = SessionWorld()
    world.start(value)
    while world.open_calls:
        world.answer(next(iter(world.open_calls)), {"x": 1})
    assert world.events
    assert TOKEN not in kept(world)


@pytest.mark.parametrize("expression", ["n1.x", "n1.x == n1.y", "n1.z[n1.x] > 1", "n1.x > 1"])
def test_a_secret_in_a_result_stays_out_of_the_log(expression: str) -> None:
    world = SessionWorld()
    world.start(decided(expression))
    world.answer(world.call_of("n1"), {"x": TOKEN, "y": TOKEN, "z": {}, "password": "hunter2 hunter2"})
    assert world.of_type("branch.taken")
    assert TOKEN not in kept(world)
    assert "hunter2" not in kept(world)


def test_a_secret_in_an_error_stays_out_of_the_log() -> None:
    world = SessionWorld()
    world.start(workflow())
    world.answer(world.call_of("n1"), code="X", message=f"401: {TOKEN} is wrong", details={"token": TOKEN})
    assert world.of_type("task.failed")
    assert TOKEN not in kept(world)
