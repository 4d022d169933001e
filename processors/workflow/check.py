"""A workflow is checked before it runs: each mistake is its own clear error (DESIGN §5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pml.processors.workflow import conditions, references
from pml.processors.workflow.checkpoints import MANUAL, POINTS
from pml.processors.workflow.graph import Graph, build, dependencies, layer_numbers, read_by
from pml.schemas.catalog import ServerTools
from pml.schemas.errors import WorkflowInvalid
from pml.schemas.identifiers import split_tool
from pml.schemas.sanitiser import sanitise_text
from pml.schemas.workflow import (
    DEPTH_MAX,
    LAYER_TASKS_MAX,
    TASKS_MAX,
    Argument,
    Decision,
    Expression,
    ListOf,
    ObjectOf,
    Parameter,
    Reference,
    Task,
    Workflow,
    expressions_in,
    leaves,
)

# Longer than any text of a workflow may be: here nothing is cut.
_TEXT_BYTES_MAX = 262_144


def checked_graph(
    workflow: Workflow, servers: Mapping[str, ServerTools], *, constants: bool = False
) -> Graph:
    """The graph of a workflow that can run.

    Args:
        workflow: tasks and decisions.
        servers: what is listed.
        constants: whether a decision may read nothing. People make a mistake by it; in a capability that is
            called with literals it is what becomes of a decision about its parameters.

    Raises:
        WorkflowInvalid: with a code of its own for each kind of mistake.
    """
    _check_shape(workflow)
    _check_secrets(workflow)
    _check_expressions(workflow)
    _check_names(workflow, constants=constants)
    _check_tools(workflow, servers)
    _check_order(workflow)
    return build(workflow)


@dataclass(frozen=True, slots=True)
class Kept:
    """What stays of a run that is replanned: names in use, what has completed, how large it is."""

    names: frozenset[str]
    completed: frozenset[str]
    tasks: int
    layers: int


def check_plan(workflow: Workflow, servers: Mapping[str, ServerTools], kept: Kept) -> None:
    """See that a plan can go on where a run stands; it may build on what has completed.

    Raises:
        WorkflowInvalid: as for a whole workflow, with the same codes.
    """
    _check_shape(workflow, kept.tasks)
    names = {task.id for task in workflow.tasks} | {item.id for item in workflow.decisions}
    twice = sorted(kept.names & names)
    if twice:
        message = f"these ids have run or were decided, choose others: {', '.join(twice)}"
        raise WorkflowInvalid("DUPLICATE_ID", message, ids=twice)
    _check_secrets(workflow)
    _check_expressions(workflow)
    _check_names(workflow, kept.completed)
    _check_tools(workflow, servers)
    _check_order(workflow, kept.completed, kept.layers)


def check_calls(workflow: Workflow, servers: Mapping[str, ServerTools], before: Graph) -> None:
    """See that what a program calls next can be called; `before` has its calls so far.

    Raises:
        WorkflowInvalid: as for a whole workflow, with the same codes.
    """
    _check_shape(workflow, len(before.nodes))
    _check_secrets(workflow)
    _check_expressions(workflow)
    _check_names(workflow, frozenset(before.nodes), frozenset(before.decisions), constants=True)
    _check_tools(workflow, servers)
    _check_order(workflow, frozenset(before.nodes))


def check_written(decisions: Iterable[Decision]) -> None:
    """See that each decision that somebody wrote reads something, where they are checked once more when
    capabilities have become tasks.

    Raises:
        WorkflowInvalid: BAD_EXPRESSION, one reads nothing.
    """
    for item in decisions:
        try:
            reads = conditions.nodes_of(item.expression)
        except conditions.ConditionError:
            continue  # said when it is checked with all others
        if not reads:
            raise _reads_nothing(item)


def _reads_nothing(item: Decision) -> WorkflowInvalid:
    message = f"decision {item.id} reads no task's result and nothing of args: {item.expression!r}"
    return WorkflowInvalid("BAD_EXPRESSION", message, node=item.id)


def check_prediction(workflow: Workflow) -> None:
    """See that predicted calls have an order; whether each may be made is asked of the guard.

    Raises:
        WorkflowInvalid: as for a whole workflow, with the same codes.
    """
    _check_shape(workflow)
    _check_expressions(workflow)
    _check_names(workflow, constants=True)
    _check_order(workflow)


def _check_shape(workflow: Workflow, others: int = 0) -> None:
    if not workflow.tasks:
        raise WorkflowInvalid("NO_TASKS", "the workflow has no tasks; give it at least one")
    count = len(workflow.tasks) + others
    if count > TASKS_MAX:
        raise WorkflowInvalid("TOO_MANY_TASKS", f"{count} tasks; at most {TASKS_MAX} are allowed")
    names = Counter([task.id for task in workflow.tasks] + [item.id for item in workflow.decisions])
    twice = sorted(name for name, count in names.items() if count > 1)
    if twice:
        raise WorkflowInvalid(
            "DUPLICATE_ID", f"ids must be unique; used more than once: {', '.join(twice)}", ids=twice
        )
    unsupported = [task.id for task in workflow.tasks if task.capability]
    if unsupported:
        raise WorkflowInvalid(
            "NOT_SUPPORTED",
            f"a run that goes on takes tools only; a capability is named by: {', '.join(unsupported)}",
        )
    _check_points(workflow)


def _check_points(workflow: Workflow) -> None:
    """A decision point is a word or a task of the workflow; `manual` alone would never wait."""
    points = workflow.options.decision_points
    named = [point for point in points if point not in POINTS]
    missing = sorted(set(named) - {task.id for task in workflow.tasks})
    if missing or (MANUAL in points and not named):
        wrong = ", ".join(missing) if missing else MANUAL
        raise WorkflowInvalid(
            "UNKNOWN_DECISION_POINT",
            f"decision_points: {wrong}; name per_layer, on_error, or tasks of the workflow to wait after",
        )


def _check_secrets(workflow: Workflow) -> None:
    """What the log must keep as it is written, because a replay works with it, may hold no secret."""
    for task in workflow.tasks:
        for text in _kept_texts(task):
            if not _is_clean(text):
                raise WorkflowInvalid(
                    "SECRET_IN_WORKFLOW",
                    f"task {task.id}: a name, reference or outcome looks like a secret; pass it by context",
                    node=task.id,
                )


def _is_clean(text: str) -> bool:
    return sanitise_text(text, _TEXT_BYTES_MAX) == text


def _kept_texts(task: Task) -> Iterator[str]:
    for name, argument in task.arguments.items():
        yield name
        yield from _argument_texts(argument)
    yield from (condition.outcome for condition in task.condition)


def _argument_texts(argument: Argument) -> Iterator[str]:
    match argument:
        case Reference(expression=text) | Parameter(parameter_name=text):
            yield text
        case ObjectOf(fields=fields):
            for name, item in fields.items():
                yield name
                yield from _argument_texts(item)
        case ListOf(items=items):
            for item in items:
                yield from _argument_texts(item)
        case Expression(code=code, expression=expression, names=names):
            yield from (code, expression or "", *names)
            for item in names.values():
                yield from _argument_texts(item)


def _check_expressions(workflow: Workflow) -> None:
    for task in workflow.tasks:
        for name, argument in task.arguments.items():
            for leaf in leaves(argument):
                if isinstance(leaf, Reference):
                    _check_reference(task.id, name, leaf.expression)
            for item in expressions_in(argument):
                _check_computed(task.id, name, item)
    _check_result(workflow)
    for decision in workflow.decisions:
        try:
            conditions.parse(decision.expression)
        except conditions.ConditionError as error:
            raise WorkflowInvalid(
                "BAD_EXPRESSION", f"decision {decision.id}: {error}", node=decision.id
            ) from None


def _check_result(workflow: Workflow) -> None:
    """What a run is to come to reads tasks of the workflow; a plan has none of its own."""
    if workflow.result is None:
        return
    if not all(map(_is_clean, _argument_texts(workflow.result))):
        raise WorkflowInvalid(
            "SECRET_IN_WORKFLOW", "result: a name or reference looks like a secret; pass it by context"
        )
    for leaf in leaves(workflow.result):
        if isinstance(leaf, Reference):
            _check_reference("result", "value", leaf.expression)
    for item in expressions_in(workflow.result):
        _check_computed("result", "value", item)
    known = {task.id for task in workflow.tasks}
    _known("MISSING_DEPENDENCY", "the result reads", read_by(workflow.result) - known)


def _check_reference(task_id: str, name: str, expression: str) -> None:
    try:
        references.parse(expression)
    except references.InvalidReference as error:
        message = f"task {task_id}, argument {name}: {error}"
        raise WorkflowInvalid("BAD_EXPRESSION", message, node=task_id) from None


def _check_computed(task_id: str, name: str, item: Expression) -> None:
    """What an argument is computed by, where that is not done in the language of a program."""
    try:
        conditions.parse(item.text)
    except conditions.ConditionError as error:
        message = f"task {task_id}, argument {name}: {error}"
        raise WorkflowInvalid("BAD_EXPRESSION", message, node=task_id) from None


def _check_names(
    workflow: Workflow,
    completed: frozenset[str] = frozenset(),
    known: frozenset[str] = frozenset(),
    *,
    constants: bool = False,
) -> None:
    tasks = completed.union(task.id for task in workflow.tasks)
    decisions = known.union(item.id for item in workflow.decisions)
    for name, needed in dependencies(workflow).items():
        _known("MISSING_DEPENDENCY", f"task {name} depends on", needed - tasks)
    for item in workflow.decisions:
        reads = conditions.nodes_of(item.expression)
        _known("MISSING_DEPENDENCY", f"decision {item.id} reads", reads - tasks - {conditions.CONTEXT})
        if not (reads or constants):
            raise _reads_nothing(item)
    for task in workflow.tasks:
        _check_outcomes(task)
        _known(
            "MISSING_DEPENDENCY",
            f"the condition of task {task.id} names",
            {c.node for c in task.condition} - decisions,
        )


def _check_outcomes(task: Task) -> None:
    for condition in task.condition:
        if condition.outcome not in {"true", "false"} and not condition.outcome.startswith("case:"):
            message = f"task {task.id}: an outcome is true, false or case:<value>, not {condition.outcome!r}"
            raise WorkflowInvalid("BAD_OUTCOME", message, node=task.id)


def _known(code: str, what: str, missing: frozenset[str] | set[str]) -> None:
    if missing:
        names = sorted(missing)
        raise WorkflowInvalid(
            code, f"{what} {', '.join(names)}, which is not there to build on", missing=names
        )


def _check_tools(workflow: Workflow, servers: Mapping[str, ServerTools]) -> None:
    for task in workflow.tasks:
        tool = task.tool or ""
        server_name, name = split_tool(tool)
        server = servers.get(server_name)
        if server is None:
            known = ", ".join(sorted(servers)) or "none"
            raise WorkflowInvalid(
                "UNKNOWN_TOOL",
                f"task {task.id}: no MCP server is called {server_name!r} (configured: {known})",
                tool=tool,
            )
        if server.status == "listed" and all(item.name != name for item in server.tools):
            raise WorkflowInvalid(
                "UNKNOWN_TOOL",
                f"task {task.id}: the server {server_name} has no tool {name!r}; see: pml tools list",
                tool=tool,
            )


def _check_order(workflow: Workflow, completed: frozenset[str] = frozenset(), layers: int = 0) -> None:
    waits = {name: needed - completed for name, needed in dependencies(workflow).items()}
    numbers = layer_numbers(waits)
    if numbers is None:
        cycle = _cycle(waits)
        raise WorkflowInvalid("CYCLE", f"the tasks wait for each other: {' -> '.join(cycle)}", cycle=cycle)
    depth = 1 + max(numbers.values()) + layers
    if depth > DEPTH_MAX:
        raise WorkflowInvalid("TOO_DEEP", f"{depth} layers; at most {DEPTH_MAX} are allowed")
    widest = Counter(numbers.values()).most_common(1)[0][1]
    if widest > LAYER_TASKS_MAX:
        raise WorkflowInvalid(
            "LAYER_TOO_WIDE", f"a layer has {widest} tasks; at most {LAYER_TASKS_MAX} are allowed"
        )


def _cycle(waits: Mapping[str, frozenset[str]]) -> list[str]:
    """One cycle, written from its first node round to it again."""
    left = dict(waits)
    while free := [name for name, needed in left.items() if not (needed & left.keys())]:
        for name in free:
            del left[name]
    path = [min(left)]
    while True:
        following = min(name for name in left[path[-1]] if name in left)
        if following in path:
            return [*path[path.index(following) :], following]
        path.append(following)
