"""What a run brings together: the edges of the tool graph that it went along (DESIGN §6, The tool graph)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, islice

from pml.processors.capabilities.inlining import BETWEEN, DEPTH_MAX
from pml.processors.workflow import conditions, references
from pml.processors.workflow.graph import read_by
from pml.schemas.catalog import Capability, EdgeType
from pml.schemas.workflow import Argument, Reference, Task, expressions_in, leaves

# What one run may teach: a workflow of 500 tasks is no reason to write a thousand records.
EDGES_OF_A_RUN_MAX = 200
# Pairs grow with the square: of the first eight tools of a run there are 28.
TOGETHER_MAX = 8
FIELDS_MAX = 8
NAME_CHARACTERS_MAX = 200

Field = tuple[str | None, str]
"""Where a value comes from in one result, None for all of it, and the argument that it goes into."""
Find = Callable[[str], Capability | None]
"""A capability of the tenant by its name or id."""


@dataclass(frozen=True, slots=True)
class EdgeKey:
    """Which edge: its type and its ends."""

    type: EdgeType
    source: str
    target: str


def edges_of_run(record: Capability, path: Collection[str], find: Find) -> dict[EdgeKey, tuple[Field, ...]]:
    """The edges that a run of a capability went along, with the fields of those that give something.

    Args:
        path: the ids of what the run came to, whether it went well or not; those of called capabilities
            begin with the id of the call.
        find: whoever cannot be found has no edges of its own, and is called as it was written.
    """
    ran = frozenset(name.partition("#")[0] for name in path)
    found: dict[EdgeKey, tuple[Field, ...]] = {}
    for key, field in islice(_all(record, ran, find), EDGES_OF_A_RUN_MAX * DEPTH_MAX):
        known = found.get(key, ())
        if key.source == key.target or (key not in found and len(found) >= EDGES_OF_A_RUN_MAX):
            continue
        found[key] = with_fields(known, () if field is None else (field,))
    return found


def with_fields(known: tuple[Field, ...], more: Iterable[Field]) -> tuple[Field, ...]:
    """The fields that are known, then new ones, as many as are kept."""
    return tuple(dict.fromkeys((*known, *more)))[:FIELDS_MAX]


def _all(record: Capability, ran: frozenset[str], find: Find) -> Iterator[tuple[EdgeKey, Field | None]]:
    tools = list(dict.fromkeys(_tools(record, ran, find, DEPTH_MAX)))[:TOGETHER_MAX]
    yield from _inside(record, ran, find, DEPTH_MAX)
    for one, other in combinations(sorted(tools), 2):
        yield EdgeKey("co_occurrence", one, other), None


def _inside(
    record: Capability, ran: frozenset[str], find: Find, depth: int
) -> Iterator[tuple[EdgeKey, Field | None]]:
    """The edges among the calls of a capability, then those of the capabilities that it calls."""
    calls = {task.id: task for task in record.tasks if _has_run(task, ran)}
    named = {name: _called(task, find) for name, task in calls.items()}
    waiting: EdgeType = "sequence" if record.source == "code" else "dependency"
    for name, task in calls.items():
        target = named[name]
        if record.capability_id:
            yield EdgeKey("contains", record.capability_id, target), None
        for source in sorted(_waits_for(record, task) & named.keys()):
            yield EdgeKey(waiting, named[source], target), None
        for source, field in _given(task):
            if source in named:
                yield EdgeKey("provides", named[source], target), field
    for task in calls.values():
        inner = find(task.capability) if task.capability is not None else None
        if inner is not None and depth > 0:
            yield from _inside(inner, _within(task, ran), find, depth - 1)


def _tools(record: Capability, ran: frozenset[str], find: Find, depth: int) -> Iterator[str]:
    """The tools that ran, also through other capabilities, in the order of the tasks."""
    for task in record.tasks:
        inner = find(task.capability) if task.capability is not None else None
        if task.tool is not None and task.id in ran:
            yield task.tool
        elif inner is not None and depth > 0 and _has_run(task, ran):
            yield from _tools(inner, _within(task, ran), find, depth - 1)


def _has_run(task: Task, ran: frozenset[str]) -> bool:
    return task.id in ran or (task.capability is not None and bool(_within(task, ran)))


def _within(task: Task, ran: frozenset[str]) -> frozenset[str]:
    """What ran of the capability that a task calls, by the ids that it has there."""
    prefix = f"{task.id}{BETWEEN}"
    return frozenset(name.removeprefix(prefix) for name in ran if name.startswith(prefix))


def _called(task: Task, find: Find) -> str:
    if task.tool is not None:
        return task.tool
    known = find(task.capability or "")
    return known.capability_id if known is not None else task.capability or ""


def _waits_for(record: Capability, task: Task) -> frozenset[str]:
    """What it is said to wait for, and what its conditions read."""
    asked = {condition.node for condition in task.condition}
    read = (_nodes_of(item.expression) for item in record.decisions if item.id in asked)
    return frozenset(task.depends_on).union(*read)


def _given(task: Task) -> Iterator[tuple[str, Field | None]]:
    """Each task whose result an argument takes, with the field where it is taken as it is."""
    for name, argument in task.arguments.items():
        computed = next(expressions_in(argument), None) is not None
        for source, field in _read(argument):
            long = len(name) > NAME_CHARACTERS_MAX or len(field or "") > NAME_CHARACTERS_MAX
            yield source, None if computed or long else (field, name)
        for source in sorted(_computed_from(argument)):
            yield source, None


def _read(argument: Argument) -> Iterator[tuple[str, str | None]]:
    """The tasks that are referred to, and the first field of their result on the way."""
    for leaf in leaves(argument):
        if isinstance(leaf, Reference):
            for place in _paths(leaf.expression):
                yield place.node, next((step for step in place.steps if isinstance(step, str)), None)


def _paths(expression: str) -> tuple[references.Path, ...]:
    try:
        return references.parse(expression)
    except references.InvalidReference:
        return ()


def _computed_from(argument: Argument) -> frozenset[str]:
    """Every task that an argument reads, as a reference or in what it computes."""
    try:
        return read_by(argument)
    except ValueError:
        return frozenset()


def _nodes_of(expression: str) -> frozenset[str]:
    """What the sanitiser made of an expression may be none any more: then nothing is known of it."""
    try:
        return conditions.nodes_of(expression)
    except ValueError:
        return frozenset()
