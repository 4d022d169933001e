"""What a program says, as the answer of a step; and what calls came to, as the program is told of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pml.processors.capabilities.inlining import Find, inlined_call
from pml.processors.workflow.arguments import Unresolved, Values, resolve_strictly
from pml.schemas.stepping import CapabilityCall, ProgramError, StepAnswer
from pml.schemas.workflow import LiteralValue, Task, Workflow

NOT_DONE = "NOT_DONE"
"""The code of the error of a call that did not happen."""


def calls_capabilities(said: Mapping[str, Any]) -> bool:
    """Whether a program calls others by name."""
    return any("capability" in call for call in said.get("calls", ()))


def step_answer(said: Mapping[str, Any], calls_before: int, find: Find) -> StepAnswer:
    """The answer for `calls`, a `value` or an `error`; calls become tasks that are counted over the run.

    Args:
        find: a capability of the tenant by its name or id.

    Raises:
        ValidationError: a call is of no tool that can be.
        WorkflowInvalid: a capability is unknown, or does not fit where it is called.
    """
    if "calls" not in said:
        error = said.get("error")
        return StepAnswer(value=said.get("value"), error=error and ProgramError.model_validate(error))
    made = [(place, call, _task(call, calls_before + place + 1)) for place, call in enumerate(said["calls"])]
    bodies = {task.id: inlined_call(task, find) for _, _, task in made if task.capability is not None}
    inner = [bodies[task.id] if task.id in bodies else Workflow(tasks=(task,)) for _, _, task in made]
    workflow = Workflow(
        tasks=tuple(task for body in inner for task in body.tasks),
        decisions=tuple(decision for body in inner for decision in body.decisions),
    )
    called = (
        CapabilityCall(
            place=place,
            name=call["capability"],
            arguments=call["arguments"],
            tasks=tuple(task.id for task in bodies[task.id].tasks),
            value=bodies[task.id].result,
        )
        for place, call, task in made
        if task.id in bodies
    )
    return StepAnswer(workflow=workflow, capabilities=tuple(called))


def calls_of(answer: StepAnswer) -> list[dict[str, Any]]:
    """The calls of an answer as the program made them."""
    return [
        {"capability": item.name, "arguments": item.arguments}
        if isinstance(item, CapabilityCall)
        else {"tool": item.tool, "arguments": _plain(item)}
        for item in _called(answer)
    ]


def results_of(answer: StepAnswer, given: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the calls of an answer came to, in the order of the program.

    Args:
        given: of each of its tasks, in their order, `value` or `error`.
    """
    tasks = answer.workflow.tasks if answer.workflow else ()
    by_task = {task.id: result for task, result in zip(tasks, given, strict=True)}
    return [
        _came_to(item, by_task) if isinstance(item, CapabilityCall) else by_task[item.id]
        for item in _called(answer)
    ]


def _task(call: Mapping[str, Any], number: int) -> Task:
    arguments = {name: LiteralValue(value=value) for name, value in call["arguments"].items()}
    if "capability" in call:
        return Task(id=f"c{number}", capability=call["capability"], arguments=arguments)
    return Task(id=f"n{number}", tool=call["tool"], arguments=arguments)


def _called(answer: StepAnswer) -> list[Task | CapabilityCall]:
    """The calls of an answer in the order of the program."""
    inner = {name for item in answer.capabilities for name in item.tasks}
    tasks = answer.workflow.tasks if answer.workflow else ()
    found: list[Task | CapabilityCall] = [task for task in tasks if task.id not in inner]
    for item in answer.capabilities:
        found.insert(item.place, item)
    return found


def _came_to(call: CapabilityCall, by_task: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The value of a capability, or the error of its first task that failed."""
    results = {name: by_task[name] for name in call.tasks}
    errors = [result for result in results.values() if "error" in result]
    failed = next((result for result in errors if result["error"]["code"] != NOT_DONE), None)
    if failed is not None:
        return failed
    if call.value is None:
        return {"value": None}
    values = {name: result["value"] for name, result in results.items() if "value" in result}
    found = resolve_strictly({"value": call.value}, Values({}, values))
    if isinstance(found, Unresolved):
        told = f"{call.name} comes to no value: {found.message}"
        return {"error": {"code": "UNRESOLVED", "type": "VALIDATION", "message": told}}
    return {"value": found.arguments["value"]}


def _plain(task: Task) -> dict[str, Any]:
    values = ((name, value) for name, value in task.arguments.items() if isinstance(value, LiteralValue))
    return {name: literal.value for name, literal in values}
