"""The DAG of a run: nodes, what each waits for, and layers (DESIGN §5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pml.processors.workflow import conditions, references
from pml.schemas.workflow import Argument, Condition, Options, Reference, Task, Workflow

OTHERWISE = "case:default"
"""The outcome of a decision that has no branch of its own for what came out."""


@dataclass(frozen=True, slots=True)
class Node:
    """A task of the DAG. `depends_on` holds every task it waits for, however that came about."""

    id: str
    tool: str
    arguments: Mapping[str, Argument]
    depends_on: frozenset[str]
    references: frozenset[str]
    conditions: tuple[Condition, ...]
    timeout_ms: int | None
    safe_to_fail: bool
    layer: int


@dataclass(frozen=True, slots=True)
class DecisionNode:
    """An expression over results and the tasks it reads."""

    id: str
    expression: str
    references: frozenset[str]


@dataclass(frozen=True, slots=True)
class Graph:
    """A checked workflow: acyclic, every name known."""

    nodes: Mapping[str, Node]
    decisions: Mapping[str, DecisionNode]
    layers: tuple[tuple[str, ...], ...]
    options: Options = field(default_factory=Options)

    def outcomes_of(self, decision_id: str) -> frozenset[str]:
        """The outcomes of a decision that have a branch of their own."""
        named = (condition for node in self.nodes.values() for condition in node.conditions)
        outcomes = {condition.outcome for condition in named if condition.node == decision_id}
        return frozenset(outcomes - {OTHERWISE})


def references_of(task: Task) -> frozenset[str]:
    """The tasks whose results a task's arguments read."""
    named = (
        references.nodes_of(item.expression)
        for item in task.arguments.values()
        if isinstance(item, Reference)
    )
    return frozenset().union(*named)


def dependencies(workflow: Workflow) -> dict[str, frozenset[str]]:
    """What each task waits for: what it names, what it reads, and what its conditions read."""
    reads = {item.id: conditions.nodes_of(item.expression) for item in workflow.decisions}
    return {
        task.id: frozenset(task.depends_on).union(
            references_of(task), *(reads.get(condition.node, frozenset()) for condition in task.condition)
        )
        for task in workflow.tasks
    }


def layer_numbers(waits: Mapping[str, frozenset[str]]) -> dict[str, int] | None:
    """The layer of each task, 0 for those that wait for nothing; None where there is a cycle."""
    numbers: dict[str, int] = {}
    dependents: dict[str, list[str]] = {name: [] for name in waits}
    open_count = {name: len(needed) for name, needed in waits.items()}
    for name, needed in waits.items():
        for other in needed:
            dependents[other].append(name)
    ready = [name for name, count in open_count.items() if count == 0]
    while ready:
        name = ready.pop()
        numbers[name] = 1 + max((numbers[other] for other in waits[name]), default=-1)
        for dependent in dependents[name]:
            open_count[dependent] -= 1
            if open_count[dependent] == 0:
                ready.append(dependent)
    return numbers if len(numbers) == len(waits) else None


def build(workflow: Workflow) -> Graph:
    """The graph of a checked workflow (see `check`)."""
    waits = dependencies(workflow)
    numbers = layer_numbers(waits)
    assert numbers is not None, "a workflow with a cycle is refused before it comes here"
    nodes = {task.id: _node(task, waits[task.id], numbers[task.id]) for task in workflow.tasks}
    decisions = {
        item.id: DecisionNode(item.id, item.expression, conditions.nodes_of(item.expression))
        for item in workflow.decisions
    }
    return Graph(nodes, decisions, _layers(nodes), workflow.options)


def _node(task: Task, waits: frozenset[str], layer: int) -> Node:
    return Node(
        id=task.id,
        tool=task.tool or "",
        arguments=task.arguments,
        depends_on=waits,
        references=references_of(task),
        conditions=task.condition,
        timeout_ms=None if task.timeout_s is None else round(task.timeout_s * 1_000),
        safe_to_fail=task.safe_to_fail,
        layer=layer,
    )


def _layers(nodes: Mapping[str, Node]) -> tuple[tuple[str, ...], ...]:
    count = 1 + max(node.layer for node in nodes.values())
    layers: list[list[str]] = [[] for _ in range(count)]
    for node in nodes.values():
        layers[node.layer].append(node.id)
    return tuple(tuple(layer) for layer in layers)
