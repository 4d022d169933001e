"""From a structure to the workflow that runs it (DESIGN §6; spec story 10.5, AC 1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pml.processors.workflow.conditions import ConditionError, divides, nodes_of, parse
from pml.processors.workflow.references import nodes_of as nodes_in
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
    Reference,
    Task,
    Workflow,
    depth_of,
    expressions_in,
    leaves,
)


def obstacles(structure: Structure) -> tuple[str, ...]:
    """Why a structure cannot be run as a workflow, one reason for each place; none where it can.

    One that `repeats` can as soon as it is known how often (see `unfolding`).
    """
    found = [f"line {item.line}: {item.reason}" for item in structure.unsupported]
    found += [f"line {node.line}: {reason}" for node in structure.nodes for reason in _of_node(node)]
    loops = frozenset(node.id for node in structure.nodes if isinstance(node, LoopNode))
    if loops:
        found += [f"line {node.line}: {why}" for node in structure.nodes for why in _beside(loops, node)]
    if structure.result is not None:
        found += [f"its result: {reason}" for reason in _of_argument("result", structure.result)]
        found += [f"its result: {reason}" for reason in _with(loops, structure.result)]
    if not any(isinstance(node, (TaskNode, CapabilityNode)) for node in structure.nodes):
        found.append("it calls no tool")
    return tuple(dict.fromkeys(found))


def repeats(structure: Structure) -> bool:
    """Whether there is a loop over a result in it."""
    return any(isinstance(node, LoopNode) for node in structure.nodes)


def workflow_of(structure: Structure) -> Workflow:
    """The workflow that makes the calls of a program in their order and under their conditions.

    One that calls capabilities has to be inlined before it runs.

    A task waits for the calls before it in the program, through whatever lies between; what runs at the same
    time in the program waits for the same calls.

    Raises:
        ValueError: there are obstacles, or it repeats something.
    """
    reasons = obstacles(structure)
    if reasons or repeats(structure):
        raise ValueError("; ".join(reasons) or "how often it repeats a call is not known")
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
        case LoopNode(items=items, each=each):
            yield from _of_argument("items", items)
            yield from () if each is None else _of_argument("each", each)
        case JoinNode(settled=True):
            yield "it goes on whether or not a call failed"


def _beside(loops: frozenset[str], node: StructureNode) -> Iterator[str]:
    """What is known only with all of the program is not decided while it comes in parts."""
    others = loops - {node.loop, node.id}
    if any(item.outcome not in {"true", "false"} for item in node.conditions):
        yield "it chooses between more than two ways beside a loop over a result"
    match node:
        case CapabilityNode():
            yield "it calls a capability beside a loop over a result"
        case TaskNode(arguments=arguments):
            for argument in arguments.values():
                yield from _with(others, argument)
        case DecisionNode(expression=expression) if expression and _is_common(expression):
            if nodes_of(expression) & others:
                yield f"`{node.condition}` is decided by what a loop came to"
        case LoopNode(items=items, each=each):
            yield from _with(others, items)
            yield from () if each is None else _with(others, each)
            if any(isinstance(leaf, Reference) and "|" in leaf.expression for leaf in leaves(items)):
                yield "it goes over one of several results"


def _with(loops: frozenset[str], argument: Argument) -> Iterator[str]:
    """Of what a loop came to only the whole is given on: the list of its times."""
    for leaf in leaves(argument):
        if isinstance(leaf, Reference) and leaf.expression not in loops and nodes_in(leaf.expression) & loops:
            yield f"`{leaf.expression}` is a part of what a loop came to"
    for item in expressions_in(argument):
        if _is_common(item.text) and nodes_of(item.text) & loops:
            yield f"`{item.text}` is computed with what a loop came to"


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
