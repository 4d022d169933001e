"""From a structure to the workflow that runs it (DESIGN §6; spec story 10.5, AC 1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pml.processors.workflow.conditions import ConditionError, divides, parse
from pml.schemas.structure import (
    CapabilityNode,
    DecisionNode,
    JoinNode,
    LoopNode,
    Structure,
    StructureEdge,
    StructureNode,
    TaskNode,
)
from pml.schemas.workflow import (
    ARGUMENT_DEPTH_MAX,
    EXPRESSION_MAX,
    Argument,
    Decision,
    Task,
    Workflow,
    depth_of,
    expressions_in,
)


def obstacles(structure: Structure) -> tuple[str, ...]:
    """Why a structure cannot be run as a workflow, one reason for each place; none where it can."""
    found = [f"line {item.line}: {item.reason}" for item in structure.unsupported]
    found += [f"line {node.line}: {reason}" for node in structure.nodes for reason in _of_node(node)]
    if structure.result is not None:
        found += [f"its result: {reason}" for reason in _of_argument("result", structure.result)]
    if not any(isinstance(node, (TaskNode, CapabilityNode)) for node in structure.nodes):
        found.append("it calls no tool")
    return tuple(dict.fromkeys(found))


def workflow_of(structure: Structure) -> Workflow:
    """The workflow that makes the calls of a program in their order and under their conditions.

    One that calls capabilities has to be inlined before it runs.

    A task waits for the calls before it in the program, through whatever lies between; what runs at the same
    time in the program waits for the same calls.

    Raises:
        ValueError: there are obstacles.
    """
    reasons = obstacles(structure)
    if reasons:
        raise ValueError("; ".join(reasons))
    before = _before(structure)
    tasks = [node for node in structure.nodes if isinstance(node, (TaskNode, CapabilityNode))]
    asked = {condition.node for task in tasks for condition in task.conditions}
    return Workflow(
        result=structure.result,
        context={item.name: item.default for item in structure.parameters if not item.required},
        tasks=tuple(_task(node, before[node.id]) for node in tasks),
        decisions=tuple(
            Decision(id=node.id, expression=node.expression or "")
            for node in structure.nodes
            if isinstance(node, DecisionNode) and node.id in asked
        ),
    )


def _task(node: TaskNode | CapabilityNode, before: tuple[str, ...]) -> Task:
    called = {"tool": node.tool} if isinstance(node, TaskNode) else {"capability": node.capability}
    return Task(
        id=node.id,
        **called,
        arguments=node.arguments,
        depends_on=before,
        condition=node.conditions,
        safe_to_fail=node.safe_to_fail,
    )


def _of_node(node: StructureNode) -> Iterator[str]:
    match node:
        case TaskNode(arguments=arguments) | CapabilityNode(arguments=arguments):
            for name, value in arguments.items():
                yield from _of_argument(name, value)
        case DecisionNode(expression=expression, condition=condition):
            if expression is None or not _is_common(expression) or len(expression) > EXPRESSION_MAX:
                yield f"`{condition}` has to be decided in the program's language"
        case LoopNode():
            yield "it repeats calls for each item of a result"
        case JoinNode(settled=True):
            yield "it goes on whether or not a call failed"


def _of_argument(name: str, value: Argument) -> Iterator[str]:
    if depth_of(value) > ARGUMENT_DEPTH_MAX:
        yield f"argument {name} is nested deeper than {ARGUMENT_DEPTH_MAX} levels"
    yield from (
        f"`{item.text}` has to be computed in the program's language"
        for item in expressions_in(value)
        if item.expression is None or not _is_common(item.expression) or divides(item.expression)
    )


def _is_common(expression: str) -> bool:
    """Whether the core evaluates it, and to the same in every language."""
    try:
        parse(expression)
    except ConditionError:
        return False
    return True


def _before(structure: Structure) -> Mapping[str, tuple[str, ...]]:
    """The nearest calls before each node; edges lead from earlier nodes to later ones."""
    calls = {node.id for node in structure.nodes if isinstance(node, (TaskNode, CapabilityNode))}
    incoming: dict[str, list[StructureEdge]] = {node.id: [] for node in structure.nodes}
    for edge in structure.edges:
        if edge.type != "provides":
            incoming[edge.target].append(edge)
    found: dict[str, tuple[str, ...]] = {}
    for node in structure.nodes:
        nearest = (
            (edge.source,) if edge.source in calls else found[edge.source] for edge in incoming[node.id]
        )
        found[node.id] = tuple(dict.fromkeys(name for names in nearest for name in names))
    return found
