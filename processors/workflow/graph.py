"""The DAG of a run: nodes, what each waits for, and layers (DESIGN §5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from pml.processors.workflow import conditions, references
from pml.schemas.workflow import (
    Argument,
    Condition,
    LiteralValue,
    Options,
    Parameter,
    Reference,
    Task,
    Workflow,
    expressions_in,
    leaves,
)

OTHERWISE = "case:default"
"""The outcome of a decision that has no branch of its own for what came out."""

NOTHING: Mapping[str, Sequence[int]] = MappingProxyType({})
_NOTHING_READ: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Node:
    """A task of the DAG. `depends_on` holds every task it waits for, however that came about.

    `plan` is the number of the replan that wrote it down, 0 for the command that began the run.
    """

    id: str
    tool: str
    arguments: Mapping[str, Argument]
    depends_on: frozenset[str]
    references: frozenset[str]
    conditions: tuple[Condition, ...]
    timeout_ms: int | None
    safe_to_fail: bool
    layer: int
    plan: int


@dataclass(frozen=True, slots=True)
class DecisionNode:
    """An expression over results and the tasks it reads."""

    id: str
    expression: str
    references: frozenset[str]
    plan: int


@dataclass(frozen=True, slots=True)
class Graph:
    """A checked workflow: acyclic, every name known."""

    nodes: Mapping[str, Node]
    decisions: Mapping[str, DecisionNode]
    layers: tuple[tuple[str, ...], ...]
    options: Options = field(default_factory=Options)
    result: Argument | None = None

    def tolerates(self, task_id: str) -> bool:
        """Whether the failure of a task does not fail the run."""
        return self.nodes[task_id].safe_to_fail

    def tools(self) -> dict[str, str]:
        """The tool of each task, in the order in which they are written down."""
        return {name: node.tool for name, node in self.nodes.items()}

    def outcomes_of(self, decision_id: str) -> frozenset[str]:
        """The outcomes of a decision that have a branch of their own."""
        named = (condition for node in self.nodes.values() for condition in node.conditions)
        outcomes = {condition.outcome for condition in named if condition.node == decision_id}
        return frozenset(outcomes - {OTHERWISE})

    def takes(self, decision_id: str, taken: str, outcome: str) -> bool:
        """Whether a decision that came to `taken` opens the branch with this outcome."""
        return taken == outcome if outcome != OTHERWISE else taken not in self.outcomes_of(decision_id)

    def opens(self, task_id: str, results: Mapping[str, Any]) -> bool:
        """Whether decisions that were taken with these results would let a task run; not where one has no
        certain value, which would fail it."""
        return all(self._met(condition, results) is True for condition in self.nodes[task_id].conditions)

    def closes(self, task_id: str, results: Mapping[str, Any]) -> bool:
        """Whether a decision that was taken with these results leaves a task out, whatever else comes."""
        return self._closing(task_id, results) is not None

    def awaited(self, task_id: str, results: Mapping[str, Any]) -> frozenset[str]:
        """The tasks whose results a task waits for, after decisions that were taken with these results.

        What is left out is waited for no more; that it is so is known from what its decision read.
        """
        waits = self.nodes[task_id].depends_on
        closings = {name: self._closing(name, results) for name in waits}
        return frozenset().union(*({name} if read is None else read for name, read in closings.items()))

    def _closing(self, task_id: str, results: Mapping[str, Any]) -> frozenset[str] | None:
        """What the decision that leaves a task out has read; None where none does."""
        for condition in self.nodes[task_id].conditions:
            read = self.decisions[condition.node].references
            if all(name in results for name in read) and self._met(condition, results) is False:
                return read
        return None

    def _met(self, condition: Condition, results: Mapping[str, Any]) -> bool | None:
        """Whether a decision comes to this; None where it has no certain value."""
        decision = self.decisions[condition.node]
        read = {name: results[name] for name in decision.references if name in results}
        try:
            taken = conditions.outcome(decision.expression, read)
        except conditions.ConditionError:
            return None
        return self.takes(condition.node, taken, condition.outcome)


class Deferred(Graph):
    """The graph of a definition, built once somebody looks into it: who folds a long log seldom does.

    Its fields are empty until then, and an empty one is what `__getattr__` is asked for. What the fold asks
    the definition answers: to build a graph takes as long as to fold thirty events.

    Args:
        definition: the workflow, as the log keeps it.
        kept, plan: as in `build`.
    """

    __slots__ = ("_definition", "_kept", "_plan")

    def __init__(
        self, definition: Mapping[str, Any], kept: Mapping[str, Sequence[int]] = NOTHING, plan: int = 0
    ) -> None:
        given = {"_definition": definition, "_kept": kept, "_plan": plan}
        for name, value in given.items():
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        if name not in Graph.__slots__:
            raise AttributeError(name)
        graph = build(Workflow.model_validate(self._definition), self._kept, self._plan)
        self.__setstate__([getattr(graph, each) for each in Graph.__slots__])
        return getattr(graph, name)

    def __setstate__(self, values: Sequence[Any]) -> None:
        """Be built: these are the fields, also those that a copy is given."""
        for name, value in zip(Graph.__slots__, values, strict=True):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_definition", None)

    def tolerates(self, task_id: str) -> bool:
        """Whether the failure of a task does not fail the run."""
        if self._definition is None:
            return super().tolerates(task_id)
        for task in self._written():
            if task["id"] == task_id:
                return bool(task.get("safe_to_fail"))
        raise KeyError(task_id)

    def tools(self) -> dict[str, str]:
        """The tool of each task, in the order in which they are written down."""
        if self._definition is None:
            return super().tools()
        return {task["id"]: task.get("tool") or "" for task in self._written()}

    def _written(self) -> Sequence[Mapping[str, Any]]:
        tasks: Sequence[Mapping[str, Any]] = self._definition.get("tasks", ())
        return tasks


def references_of(task: Task) -> frozenset[str]:
    """The tasks whose results a task's arguments read."""
    return frozenset().union(*map(read_by, task.arguments.values()))


def read_by(argument: Argument | None) -> frozenset[str]:
    """The tasks whose results an argument reads, if there is one."""
    if argument is None or isinstance(argument, (LiteralValue, Parameter)):
        return _NOTHING_READ  # what most arguments are, and most of the time of a graph that is built
    named = (references.nodes_of(leaf.expression) for leaf in leaves(argument) if isinstance(leaf, Reference))
    computed = (conditions.nodes_of(item.text) - {conditions.CONTEXT} for item in expressions_in(argument))
    return frozenset().union(*named, *computed)


def dependencies(workflow: Workflow) -> dict[str, frozenset[str]]:
    """What each task waits for: what it names, what it reads, and what its conditions read."""
    return _dependencies(workflow, {task.id: references_of(task) for task in workflow.tasks})


def _dependencies(workflow: Workflow, read: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    reads = {item.id: _reads(workflow, item.expression) for item in workflow.decisions}
    return {
        task.id: frozenset(task.depends_on).union(
            read[task.id], *(reads.get(condition.node, frozenset()) for condition in task.condition)
        )
        for task in workflow.tasks
    }


def _reads(workflow: Workflow, expression: str) -> frozenset[str]:
    """The tasks that a decision reads; `args` is the run's context, where no task is called so."""
    named = conditions.nodes_of(expression)
    shadowed = any(task.id == conditions.CONTEXT for task in workflow.tasks)
    return named if shadowed else named - {conditions.CONTEXT}


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


def build(workflow: Workflow, kept: Mapping[str, Sequence[int]] = NOTHING, plan: int = 0) -> Graph:
    """The graph of a checked workflow (see `check`).

    Args:
        workflow: all tasks and decisions.
        kept: layer and plan of those that stay from before; what is new comes in the layers after them.
        plan: the number of the plan that wrote down what is new.
    """
    read = {task.id: references_of(task) for task in workflow.tasks}
    waits = _dependencies(workflow, read)
    new = {name: needed - kept.keys() for name, needed in waits.items() if name not in kept}
    numbers = layer_numbers(new)
    assert numbers is not None, "a workflow with a cycle is refused before it comes here"
    first = 1 + max((kept[name][0] for name in waits if name in kept), default=-1)
    places = {name: kept[name] if name in kept else (first + numbers[name], plan) for name in waits}
    nodes = {task.id: _node(task, waits[task.id], read[task.id], *places[task.id]) for task in workflow.tasks}
    decisions = {
        item.id: DecisionNode(
            item.id,
            item.expression,
            _reads(workflow, item.expression),
            kept[item.id][1] if item.id in kept else plan,
        )
        for item in workflow.decisions
    }
    return Graph(nodes, decisions, _layers(nodes), workflow.options, workflow.result)


def grown(graph: Graph, workflow: Workflow, plan: int) -> Graph:
    """The graph with what a program asked for next, in the layers after all others.

    That is one layer, or those of the capabilities that it calls. Its first plan brings the options.
    """
    known = dict.fromkeys(graph.nodes, (-1, 0))
    asked = build(workflow, known, plan)
    first = len(graph.layers)
    nodes = {name: replace(node, layer=first + node.layer) for name, node in asked.nodes.items()}
    return Graph(
        {**graph.nodes, **nodes},
        {**graph.decisions, **asked.decisions},
        (*graph.layers, *asked.layers),
        graph.options if graph.layers or nodes else workflow.options,
    )


def _node(task: Task, waits: frozenset[str], read: frozenset[str], layer: int, plan: int) -> Node:
    return Node(
        id=task.id,
        tool=task.tool or "",
        arguments=task.arguments,
        depends_on=waits,
        references=read,
        conditions=task.condition,
        timeout_ms=None if task.timeout_s is None else round(task.timeout_s * 1_000),
        safe_to_fail=task.safe_to_fail,
        layer=layer,
        plan=plan,
    )


def as_task(node: Node) -> Task:
    """The definition of a node, as the log keeps it."""
    return Task(
        id=node.id,
        tool=node.tool,
        arguments=dict(node.arguments),
        depends_on=tuple(sorted(node.depends_on)),
        condition=node.conditions,
        timeout_s=None if node.timeout_ms is None else node.timeout_ms / 1_000,
        safe_to_fail=node.safe_to_fail,
    )


def _layers(nodes: Mapping[str, Node]) -> tuple[tuple[str, ...], ...]:
    count = 1 + max((node.layer for node in nodes.values()), default=-1)
    layers: list[list[str]] = [[] for _ in range(count)]
    for node in nodes.values():
        layers[node.layer].append(node.id)
    return tuple(tuple(layer) for layer in layers)
