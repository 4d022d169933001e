"""Programs with loops over results, part by part: how often one repeats is known with its items (DESIGN §6).

The first part has every call that waits for no loop. When all calls so far have ended, the loops that wait
for nothing else are unfolded: `n3` of a loop becomes `n3__0`, `n3__1`, …, and what follows on it follows on
these. A part follows from the structure, the context and the results alone: it is the same at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pml.processors.capabilities.substitution import Inexpressible, Scope, rewritten, selected, substituted
from pml.processors.workflow import conditions
from pml.processors.workflow.arguments import Unresolved, Values, resolve_strictly
from pml.processors.workflow.graph import read_by
from pml.schemas.base import Coordinate
from pml.schemas.errors import WorkflowInvalid
from pml.schemas.stepping import ProgramError, StepAnswer, StepTaken
from pml.schemas.structure import DecisionNode, LoopNode, Structure, StructureNode, TaskNode
from pml.schemas.workflow import (
    TASKS_MAX,
    Argument,
    Condition,
    Decision,
    ListOf,
    LiteralValue,
    ObjectOf,
    Task,
    Workflow,
)

BETWEEN = "__"
# A part is a workflow: of 100 layers of 200 at most. What is beyond these comes with the next one.
DEPTH_MAX = 50
WIDTH_MAX = 200


@dataclass(frozen=True, slots=True)
class Done:
    """What was asked for and has ended, and the results of what completed."""

    tasks: frozenset[str] = frozenset()
    results: Mapping[str, Any] = field(default_factory=dict)


def done_after(steps: Iterable[tuple[StepAnswer, StepTaken]], value_at: Callable[[Coordinate], Any]) -> Done:
    """What is done after these steps; `value_at` is the full result at its place."""
    tasks: list[str] = []
    results: dict[str, Any] = {}
    for answer, taken in steps:
        asked = answer.workflow.tasks if answer.workflow else ()
        for task, given in zip(asked, taken.results, strict=True):
            tasks.append(task.id)
            if given.result is not None:
                results[task.id] = value_at(given.result)
    return Done(frozenset(tasks), results)


class _Unfoldable(Exception):
    """The program cannot go on; the message says why."""


def next_part(structure: Structure, context: Mapping[str, Any], done: Done) -> StepAnswer:
    """The calls that follow on what is done, or what the program comes to.

    Args:
        structure: without obstacles.
        context: what the caller gives; parameters that are not in it have their defaults.

    Raises:
        WorkflowInvalid: there are more calls than a run may have.
    """
    unfolding = _Unfolding(structure, context, done)
    try:
        unfolding.unfold()
        new = _fitting(task for task in unfolding.tasks.values() if task.id not in done.tasks)
        if new:
            return StepAnswer(workflow=_workflow(unfolding, new), unfolded=True)
        return unfolding.end()
    except (_Unfoldable, Inexpressible) as error:
        return StepAnswer(error=ProgramError(code="PROGRAM_ERROR", message=str(error)), unfolded=True)


class _Unfolding:
    """The program as far as it is known: its tasks, and what each of its nodes stands for."""

    def __init__(self, structure: Structure, context: Mapping[str, Any], done: Done) -> None:
        self.structure, self.done = structure, done
        defaults = {item.name: item.default for item in structure.parameters if not item.required}
        absent = {name: value for name, value in defaults.items() if name not in context}
        self.values = Values({**absent, **context}, done.results)
        self.bound = {name: LiteralValue(value=value) for name, value in absent.items()}
        self.tasks: dict[str, Task] = {}
        self.decisions: dict[str, Decision] = {}
        self.lists: dict[str, Argument] = {}
        self._stands_for: dict[str, tuple[str, ...] | None] = {}
        self._before = _before(structure)
        self._nodes = {node.id: node for node in structure.nodes}

    def unfold(self) -> None:
        """Every node that does not wait for a loop of which nobody knows how often it repeats."""
        for node in self.structure.nodes:
            if node.loop is None:
                self._stands_for[node.id] = self._unfolded(node)

    def end(self) -> StepAnswer:
        """What the program comes to."""
        if self.structure.result is None:
            return StepAnswer(unfolded=True)
        found = resolve_strictly({"result": substituted(self.structure.result, self._scope())}, self.values)
        if isinstance(found, Unresolved):
            return StepAnswer(value_error=found.message, unfolded=True)
        return StepAnswer(value=found.arguments["result"], unfolded=True)

    def _unfolded(self, node: StructureNode) -> tuple[str, ...] | None:
        """The calls that what follows on a node waits for; None where they are not known yet."""
        waits = self._waits(self._before[node.id])
        if waits is None or not self._known(node):
            return None
        match node:
            case TaskNode():
                self._add(node, node.id, waits, self._scope())
                return (node.id,)
            case LoopNode():
                return self._repeated(node, waits)
        return waits

    def _waits(self, before: Iterable[str]) -> tuple[str, ...] | None:
        found = [self._stands_for.get(name) for name in before]
        if any(names is None for names in found):
            return None
        return tuple(dict.fromkeys(name for names in found for name in names or ()))

    def _known(self, node: StructureNode) -> bool:
        """Whether every loop is unfolded that a node, or a decision that it depends on, reads."""
        inside = [
            each for each in self.structure.nodes if isinstance(node, LoopNode) and each.loop == node.id
        ]
        read = {name for each in (node, *inside) for name in _read(each)} - {node.id}
        read |= {name for item in node.conditions for name in _read(self._nodes[item.node])}
        return all(self._is_known(name) for name in read)

    def _is_known(self, name: str) -> bool:
        node = self._nodes.get(name)
        return not isinstance(node, LoopNode) or name in self.lists

    def _repeated(self, loop: LoopNode, waits: tuple[str, ...]) -> tuple[str, ...] | None:
        """The calls of a loop, once for each of its items."""
        needed = {*waits, *(name for name in read_by(loop.items) if name in self.tasks)}
        if not needed <= self.done.tasks:
            return None
        items = self._items(loop) if self._is_taken(loop) else []
        inside = [node for node in self.structure.nodes if node.loop == loop.id]
        each: list[Argument] = []
        last = waits
        everything: list[str] = []
        for index, item in enumerate(items):
            scope = self._inside(loop, inside, index, item)
            made = self._once(inside, index, waits if loop.parallel else last, scope)
            each.append(LiteralValue(value=None) if loop.each is None else substituted(loop.each, scope))
            everything += made
            last = tuple(made) or last
        self.lists[loop.id] = ListOf(items=tuple(each))
        return (tuple(everything) or waits) if loop.parallel else last

    def _items(self, loop: LoopNode) -> list[Argument]:
        """What a loop goes over: where they rest, so that nothing is copied into the log."""
        items = substituted(loop.items, self._scope())
        found = resolve_strictly({"items": items}, self.values)
        if isinstance(found, Unresolved):
            raise _Unfoldable(f"line {loop.line}: {found.message}")
        value = found.arguments["items"]
        if not isinstance(value, list):
            raise _Unfoldable(f"line {loop.line}: what it goes over is no list")
        if len(value) > TASKS_MAX:
            message = (
                f"line {loop.line}: a loop over {len(value)} items; at most {TASKS_MAX} calls are allowed"
            )
            raise WorkflowInvalid("TOO_MANY_TASKS", message)
        return [selected(items, (index,)) for index in range(len(value))]

    def _is_taken(self, loop: LoopNode) -> bool:
        given = {**self.values.results, conditions.CONTEXT: self.values.context}
        for condition in loop.conditions:
            decision = self._nodes[condition.node]
            assert isinstance(decision, DecisionNode)
            try:
                outcome = conditions.outcome(rewritten(decision.expression or "", self._scope()), given)
            except conditions.ConditionError as error:
                raise _Unfoldable(f"line {decision.line}: {error}") from None
            if outcome != condition.outcome:
                return False
        return True

    def _scope(self) -> Scope:
        return Scope(values=self.lists, bound=self.bound)

    def _inside(self, loop: LoopNode, inside: Sequence[StructureNode], index: int, item: Argument) -> Scope:
        """What names mean in one time of a loop."""
        turn = ObjectOf(fields={"item": item, "index": LiteralValue(value=index)})
        renamed = {node.id: _copy(node.id, index) for node in inside}
        return Scope(renamed=renamed, values={**self.lists, loop.id: turn}, bound=self.bound)

    def _once(
        self, inside: Sequence[StructureNode], index: int, first: tuple[str, ...], scope: Scope
    ) -> list[str]:
        """The calls of one time of a loop."""
        made = []
        for node in inside:
            if isinstance(node, TaskNode):
                before = tuple(_copy(name, index) for name in self._before[node.id]) or first
                self._add(node, _copy(node.id, index), before, scope)
                made.append(_copy(node.id, index))
        return made

    def _add(self, node: TaskNode, name: str, waits: tuple[str, ...], scope: Scope) -> None:
        asked = tuple(
            Condition(node=scope.renamed.get(item.node, item.node), outcome=item.outcome)
            for item in node.conditions
        )
        for own, item in zip(asked, node.conditions, strict=True):
            decision = self._nodes[item.node]
            assert isinstance(decision, DecisionNode)
            text = rewritten(decision.expression or "", scope)
            self.decisions.setdefault(own.node, Decision(id=own.node, expression=text))
        self.tasks[name] = Task(
            id=name,
            tool=node.tool,
            arguments={key: substituted(value, scope) for key, value in node.arguments.items()},
            depends_on=waits,
            condition=asked,
            safe_to_fail=node.safe_to_fail,
        )


def _copy(name: str, index: int) -> str:
    return f"{name}{BETWEEN}{index}"


def _before(structure: Structure) -> dict[str, tuple[str, ...]]:
    """The nearest calls and loops before each node; inside of a loop only those inside."""
    found: dict[str, tuple[str, ...]] = {}
    stops = {node.id for node in structure.nodes if isinstance(node, (TaskNode, LoopNode))}
    incoming: dict[str, list[str]] = {node.id: [] for node in structure.nodes}
    for edge in structure.edges:
        if edge.type not in {"provides", "contains"}:
            incoming[edge.target].append(edge.source)
    for node in structure.nodes:
        nearest = ((name,) if name in stops else found[name] for name in incoming[node.id])
        found[node.id] = tuple(dict.fromkeys(name for names in nearest for name in names))
    return found


def _read(node: StructureNode) -> Iterator[str]:
    """The nodes whose values a node reads."""
    match node:
        case TaskNode(arguments=arguments):
            for argument in arguments.values():
                yield from read_by(argument)
        case LoopNode(items=items):
            yield from read_by(items)
        case DecisionNode(expression=expression):
            yield from conditions.nodes_of(expression or "")


def _fitting(tasks: Iterable[Task]) -> list[Task]:
    """As many as a part may have, in their order: none without all that it waits for."""
    levels: dict[str, int] = {}
    width: dict[int, int] = {}
    left: set[str] = set()
    found = []
    for task in tasks:
        waits = {*task.depends_on, *(name for item in task.arguments.values() for name in read_by(item))}
        level = 1 + max((levels[name] for name in waits if name in levels), default=-1)
        if level >= DEPTH_MAX or width.get(level, 0) >= WIDTH_MAX or waits & left:
            left.add(task.id)
            continue
        levels[task.id], width[level] = level, width.get(level, 0) + 1
        found.append(task)
    return found


def _workflow(unfolding: _Unfolding, new: Sequence[Task]) -> Workflow:
    """The new tasks, and the decisions that none before has asked for."""
    known = {
        item.node
        for task in unfolding.tasks.values()
        if task.id in unfolding.done.tasks
        for item in task.condition
    }
    asked = dict.fromkeys(item.node for task in new for item in task.condition)
    decisions = tuple(unfolding.decisions[name] for name in asked if name not in known)
    return Workflow(tasks=tuple(new), decisions=decisions)
