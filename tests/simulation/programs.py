"""Workflows as an agent may ask for them instead: programs, intents, and calls of capabilities."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

from pml.processors.workflow.graph import build
from pml.schemas.catalog import Capability
from pml.schemas.matching import MatchAnswer
from pml.schemas.structure import StructureParameter
from pml.schemas.workflow import Argument, LiteralValue, Parameter, Reference, Task, Workflow

# Of the drawn workflows; in all seeds together every door has its hundreds.
SHARES = {"program": 0.2, "intent": 0.08, "call": 0.08}
INTENT_MAX = 9_000
_TOLD = ("name", "workflow_type", "tasks", "decisions")
# What the catalog would have, by the names that only their callers know.
CAPABILITIES: dict[str, Capability] = {}
# Of the programs: those that are no DAG.
SANDBOX_SHARE = 0.4
# Of the calls of those: through a capability.
CALLED = 0.25
# Of the layers that begin with one of `LOOKING`: that call is made some times before.
REPEATED = 0.15
# What such a one does twice, one after the other.
LOOKING = frozenset({"get", "list", "read"})
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
    sandbox = random.random() < SANDBOX_SHARE
    lines = _lines([[tasks[name] for name in layer] for layer in layers], random, CALLED if sandbox else 0.0)
    return "\n".join([*lines, *(["while False:", "    pass"] if sandbox else [])])


def _lines(layers: list[list[Task]], random: Random, called: float) -> Iterator[str]:
    for layer in layers:
        calls = [_call(task, random, random.random() < called) for task in layer]
        if random.random() < REPEATED and (layer[0].tool or "").partition(":")[2] in LOOKING:
            yield f"for turn in args.get('turns', {list(range(random.randint(0, 3)))}):"
            yield f"    await {calls[0]}"
        if len(layer) == 1:
            yield f"{layer[0].id} = await {calls[0]}"
        else:
            yield f"({', '.join(task.id for task in layer)}) = await asyncio.gather({', '.join(calls)})"


def _call(task: Task, random: Random, as_capability: bool) -> str:
    server, _, name = (task.tool or "").partition(":")
    given = ", ".join(f"{key}={_written(value, random)}" for key, value in task.arguments.items())
    if as_capability:
        return f"capabilities.{_remembered(task)}({given})"
    return f"mcp[{server!r}][{name!r}]({given})"


def _remembered(task: Task) -> str:
    """The name of a capability that makes a call twice where it only looks, once where it does more."""
    taken = {key: Parameter(parameter_name=key) for key in task.arguments}
    once = Task(id="n1", tool=task.tool, arguments=taken)
    again = Task(id="n2", tool=task.tool, arguments=taken, depends_on=("n1",))
    reads = (task.tool or "").partition(":")[2] in LOOKING
    name = f"{(task.tool or '').replace(':', '_')}_{len(taken)}_{'_'.join(taken)}"
    CAPABILITIES[name] = Capability(
        tenant="local",
        name=name,
        capability_id=name,
        tasks=(once, again) if reads else (once,),
        parameters=tuple(StructureParameter(name=key) for key in taken),
        result=Reference(expression="n2" if reads else "n1"),
    )
    return name


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


def as_intent(workflow: dict[str, Any]) -> str | None:
    """An intent that means this workflow, for who reads it; None where it is too long to be one."""
    told = json.dumps({name: workflow[name] for name in _TOLD if name in workflow}, sort_keys=True)
    return told if len(told) < INTENT_MAX else None


def meant(intent: str) -> MatchAnswer:
    """What `pml:match` answers to it: no model, for what is meant is written down."""
    workflow = Workflow.model_validate_json(intent)
    return MatchAnswer(
        confidence=1.0, threshold=0.7, capability_id="cap_meant", name="meant", workflow=workflow
    )


def as_call(workflow: dict[str, Any], name: str) -> dict[str, Any]:
    """A workflow that calls one of this name, which is what this one is."""
    given = Workflow.model_validate(workflow)
    CAPABILITIES[name] = Capability(
        tenant="local",
        name=name,
        capability_id=name,
        tasks=given.tasks,
        decisions=given.decisions,
        parameters=tuple(
            StructureParameter(name=key, required=False, default=value)
            for key, value in given.context.items()
        ),
    )
    options = {**workflow.get("options", {}), "decision_points": []}
    return {"options": options, "tasks": [{"id": "c1", "capability": name}]}
