"""Workflows that call capabilities, with the tasks of these in their place (DESIGN §5).

The tasks of `c1` become `c1__n1`, …, its parameters the arguments of the call, its result the value of `c1`.
All of them wait for what the call waits for, and what waits for the call waits for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from pml.processors.capabilities.substitution import Inexpressible, Scope, rewritten, substituted
from pml.processors.workflow import conditions
from pml.processors.workflow.graph import read_by
from pml.schemas.catalog import Capability
from pml.schemas.errors import WorkflowInvalid
from pml.schemas.workflow import (
    TASKS_MAX,
    Argument,
    Condition,
    Decision,
    LiteralValue,
    Options,
    Task,
    Workflow,
)

DEPTH_MAX = 5
BETWEEN = "__"
"""Between the id of a call and those of its tasks: names in expressions have no slash."""

Find = Callable[[str], Capability | None]
"""A capability of the tenant by its name or id."""


def inlined(workflow: Workflow, find: Find, above: tuple[str, ...] = ()) -> Workflow:
    """The same workflow with tasks of tools only.

    Args:
        above: ids of the capabilities that this one is called by.

    Raises:
        WorkflowInvalid: a capability is unknown, or does not fit where it is called; the code says which.
    """
    while (call := next((task for task in workflow.tasks if task.capability is not None), None)) is not None:
        body = _body(call, _found(call, find, above), find, above)
        workflow = _in_its_place(workflow, call, body)
        if len(workflow.tasks) > TASKS_MAX:
            message = f"with its capabilities the workflow has more than {TASKS_MAX} tasks"
            raise WorkflowInvalid("TOO_MANY_TASKS", message)
    return workflow


def inlined_call(call: Task, find: Find) -> Workflow:
    """What one call of a capability comes to: its tasks under ids of the call, and its value over them.

    Args:
        call: with literals for arguments.

    Raises:
        WorkflowInvalid: as for a whole workflow.
    """
    return _body(call, _found(call, find, ()), find, ())


def _found(call: Task, find: Find, above: tuple[str, ...]) -> Capability:
    name = call.capability or ""
    found = find(name)
    if found is None:
        raise _invalid(call, "UNKNOWN_CAPABILITY", f"there is no {name}; see: pml capability list")
    if found.not_learned is not None:
        raise _invalid(call, "UNKNOWN_CAPABILITY", f"{name} cannot be called: {found.not_learned}")
    if not found.tasks:
        told = f"{name} is a program that comes in parts; only a program can call it"
        raise _invalid(call, "CAPABILITY_IN_SANDBOX", told)
    if found.capability_id in above:
        raise _invalid(call, "CAPABILITY_CYCLE", f"{name} calls itself")
    if len(above) >= DEPTH_MAX:
        raise _invalid(call, "CAPABILITY_TOO_DEEP", f"capabilities lie deeper in each other than {DEPTH_MAX}")
    return found


def _body(call: Task, record: Capability, find: Find, above: tuple[str, ...]) -> Workflow:
    """The workflow of a capability with the arguments of its call, under ids of its own."""
    written = Workflow(tasks=record.tasks, decisions=record.decisions, result=record.result)
    inner = inlined(written, find, (*above, record.capability_id))
    ids = [task.id for task in inner.tasks] + [item.id for item in inner.decisions]
    scope = Scope({name: f"{call.id}{BETWEEN}{name}" for name in ids}, bound=_bound(call, record))
    try:
        return Workflow(
            tasks=tuple(_within(task, call, scope) for task in inner.tasks),
            decisions=tuple(_decision(item, scope) for item in inner.decisions),
            result=None if inner.result is None else substituted(inner.result, scope),
        )
    except Inexpressible as error:
        raise _invalid(call, "CAPABILITY_ARGUMENT", str(error)) from None
    except ValidationError:
        raise _invalid(call, "CAPABILITY_TOO_DEEP", "its ids or expressions would be too long") from None


def _bound(call: Task, record: Capability) -> Mapping[str, Argument]:
    names = [item.name for item in record.parameters]
    surplus = sorted(set(call.arguments) - set(names))
    if surplus:
        told = f"it takes no {', '.join(surplus)}; it takes {', '.join(names) or 'nothing'}"
        raise _invalid(call, "CAPABILITY_ARGUMENT", told)
    absent = [item.name for item in record.parameters if item.required and item.name not in call.arguments]
    if absent:
        raise _invalid(call, "CAPABILITY_ARGUMENT", f"it takes {', '.join(absent)}, which is not given")
    defaults = {item.name: LiteralValue(value=item.default) for item in record.parameters}
    return {**defaults, **call.arguments}


def _within(task: Task, call: Task, scope: Scope) -> Task:
    """A task of a capability, where it is called."""
    waits_for = sorted(frozenset().union(*(read_by(item) for item in call.arguments.values())))
    own = tuple(
        Condition(node=scope.renamed.get(item.node, item.node), outcome=item.outcome)
        for item in task.condition
    )
    changed: dict[str, Any] = {
        "id": scope.renamed[task.id],
        "arguments": {name: substituted(item, scope) for name, item in task.arguments.items()},
        "depends_on": tuple(
            dict.fromkeys((*(scope.renamed[name] for name in task.depends_on), *call.depends_on, *waits_for))
        ),
        "condition": (*call.condition, *own),
        "timeout_s": task.timeout_s or call.timeout_s,
        "safe_to_fail": task.safe_to_fail or call.safe_to_fail,
    }
    return Task.model_validate({**task.model_dump(exclude={"arguments"}), **changed})


def _decision(decision: Decision, scope: Scope) -> Decision:
    return Decision(id=scope.renamed[decision.id], expression=rewritten(decision.expression, scope))


def _in_its_place(workflow: Workflow, call: Task, body: Workflow) -> Workflow:
    """The workflow with the tasks of a capability in the place of its call."""
    scope = Scope(values={} if body.result is None else {call.id: body.result})
    ids = tuple(task.id for task in body.tasks)
    try:
        _check_result(workflow, call, body)
        around = [_after(task, call.id, ids, scope) for task in workflow.tasks]
        place = workflow.tasks.index(call)
        tasks = (*around[:place], *body.tasks, *around[place + 1 :])
        decisions = tuple(
            item.model_copy(update={"expression": rewritten(item.expression, scope)})
            for item in workflow.decisions
        )
        result = None if workflow.result is None else substituted(workflow.result, scope)
    except Inexpressible as error:
        raise _invalid(call, "CAPABILITY_ARGUMENT", f"its value cannot be used so: {error}") from None
    return workflow.model_copy(
        update={
            "tasks": tasks,
            "decisions": (*decisions, *body.decisions),
            "result": result,
            "options": _options(workflow.options, call.id, ids),
        }
    )


def _check_result(workflow: Workflow, call: Task, body: Workflow) -> None:
    """
    Raises:
        WorkflowInvalid: the value of a call is used that has none.
    """
    written = [item for task in workflow.tasks for item in task.arguments.values()]
    written += [] if workflow.result is None else [workflow.result]
    read = [read_by(item) for item in written]
    read += [conditions.nodes_of(item.expression) for item in workflow.decisions]
    if body.result is None and any(call.id in names for names in read):
        raise _invalid(call, "CAPABILITY_ARGUMENT", "it comes to no value; let it return one")


def _after(task: Task, call_id: str, ids: tuple[str, ...], scope: Scope) -> Task:
    """A task beside a call: it waits for all that the call does, and reads what that comes to."""
    reads = any(call_id in read_by(item) for item in task.arguments.values())
    if not reads and call_id not in task.depends_on:
        return task
    others = [name for name in task.depends_on if name != call_id]
    arguments = {name: substituted(item, scope) for name, item in task.arguments.items()}
    return task.model_copy(
        update={"arguments": arguments, "depends_on": tuple(dict.fromkeys((*others, *ids)))}
    )


def _options(options: Options, call_id: str, ids: tuple[str, ...]) -> Options:
    """Who wants to wait after a call waits after each of its tasks."""
    if call_id not in options.decision_points:
        return options
    points = [ids if point == call_id else (point,) for point in options.decision_points]
    return options.model_copy(update={"decision_points": tuple(name for names in points for name in names)})


def _invalid(call: Task, code: str, reason: str) -> WorkflowInvalid:
    return WorkflowInvalid(code, f"task {call.id}: {reason}", node=call.id)
