"""Workflows as programs that make the same calls: what an agent writes instead of a list of tasks."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from pml.processors.workflow.graph import build
from pml.schemas.workflow import Argument, LiteralValue, Reference, Task, Workflow

SHARE = 0.2
# What these fields hold is taken for a path; a number is none.
_PATHS = (".first", ".path")


def as_program(workflow: dict[str, Any], random: Random) -> str:
    """A program in Python that calls the tools of a workflow, layer by layer and without its conditions."""
    given = Workflow.model_validate(workflow)
    plain = given.model_copy(
        update={"tasks": tuple(task.model_copy(update={"condition": ()}) for task in given.tasks)}
    )
    layers = build(plain.model_copy(update={"decisions": ()})).layers
    tasks = {task.id: task for task in plain.tasks}
    return "\n".join(_lines([[tasks[name] for name in layer] for layer in layers], random))


def _lines(layers: list[list[Task]], random: Random) -> Iterator[str]:
    for layer in layers:
        calls = [_call(task, random) for task in layer]
        if len(layer) == 1:
            yield f"{layer[0].id} = await {calls[0]}"
        else:
            yield f"({', '.join(task.id for task in layer)}) = await asyncio.gather({', '.join(calls)})"


def _call(task: Task, random: Random) -> str:
    server, _, name = (task.tool or "").partition(":")
    given = ", ".join(f"{key}={_written(value, random)}" for key, value in task.arguments.items())
    return f"mcp[{server!r}][{name!r}]({given})"


def _written(argument: Argument, random: Random) -> str:
    match argument:
        case LiteralValue(value=value):
            return repr(value)
        case Reference(expression=expression):
            first = expression.partition("|")[0]
            counted = not first.endswith(_PATHS) and random.random() < 0.5
            return f"{first.partition('.')[0]}.size + 1" if counted else first
    assert argument.type == "parameter"
    return f"args.{argument.parameter_name}"
