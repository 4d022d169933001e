"""`run.replan`: other tasks in place of what has not run (DESIGN §4, Triggers; spec story 12.6)."""

from __future__ import annotations

from pml.processors.workflow.beforehand import begin
from pml.processors.workflow.check import Kept, check_plan
from pml.processors.workflow.checkpoints import pause
from pml.processors.workflow.deciding import record_choice, waiting_at
from pml.processors.workflow.definitions import safe_definition
from pml.processors.workflow.draft import Draft
from pml.processors.workflow.folding import coordinate_of
from pml.processors.workflow.graph import Graph, as_task, build
from pml.processors.workflow.obedience import Decision, NotWaiting, live_run
from pml.processors.workflow.settling import discard_all
from pml.processors.workflow.shown import withdraw_all
from pml.processors.workflow.state import Run
from pml.schemas import workflow as definitions
from pml.schemas.commands import Command, RunReplan
from pml.schemas.errors import Refused
from pml.schemas.events import RunReplanned
from pml.schemas.workflow import Workflow

REPLANS_MAX = 3


class ReplanLimit(Refused):
    """A run that was replanned three times and still does not fit is better begun anew."""

    code = "REPLAN_LIMIT"


class NotReplannable(Refused):
    """What a program does in the sandbox is said by the program."""

    code = "NOT_REPLANNABLE"


def replan_run(draft: Draft, command: Command, data: RunReplan, decision: Decision) -> None:
    """Replace what has not run, discard what ran early for it, and go on or, with `hold`, wait again.

    Raises:
        Refused: the run does not wait here, or was replanned too often.
        WorkflowInvalid: the plan cannot run.
    """
    run = live_run(draft, command.run_id)
    if run.sandbox is not None:
        raise NotReplannable(f"{run.run_id} does what its program says; abort it and send another program")
    waiting_at(run, data.checkpoint_id)
    assert run.waits.pause is not None
    _check(draft, run, data)
    assert run.graph is not None
    places, number = _places(run, run.graph), len(run.replans) + 1
    workflow = _merged(run.graph, places, data)
    definition = safe_definition(workflow)
    graph = build(workflow, places, number)
    record_choice(draft, run, "replan", decision)
    discard_all(draft, run.run_id, "replanned")
    withdraw_all(draft, run.run_id, "replanned")
    replanned = RunReplanned(
        **decision.fields(),
        checkpoint_id=run.waits.pause.checkpoint_id,
        number=number,
        definition=definition,
        kept=places,
        dropped=tuple(name for name in run.graph.nodes if name not in places),
        payload_ref=coordinate_of(draft.source.address),
        layers=len(graph.layers),
        tasks=len(graph.nodes),
    )
    draft.emit(replanned, run)
    if data.hold:
        pause(draft, run.run_id, "replanned", draft.run(run.run_id).waits.cleared)
    begin(draft, run.run_id)


def _check(draft: Draft, run: Run, data: RunReplan) -> None:
    """
    Raises:
        Refused, WorkflowInvalid: as for `replan_run`.
    """
    assert run.graph is not None
    if len(run.replans) - len(run.expansions) >= REPLANS_MAX:
        raise ReplanLimit(f"{run.run_id} was replanned {REPLANS_MAX} times; abort it and begin another run")
    busy = [name for name, task in run.tasks.items() if task.status == "running" or task.awaits_approval]
    if busy:
        raise NotWaiting(f"{', '.join(busy)} of {run.run_id} still run; replan it when they have ended")
    completed = frozenset(name for name, task in run.tasks.items() if task.status == "completed")
    places = _places(run, run.graph)
    kept = Kept(
        names=frozenset(places),
        completed=completed,
        tasks=sum(name in places for name in run.graph.nodes),
        layers=1 + max((layer for layer, _ in places.values()), default=-1),
    )
    check_plan(Workflow(tasks=data.tasks, decisions=data.decisions), draft.catalog.servers, kept)


def _places(run: Run, graph: Graph) -> dict[str, tuple[int, int]]:
    """Layer and plan of what stays: tasks that have ended and decisions that were taken."""
    tasks = {node.id: (node.layer, node.plan) for node in graph.nodes.values() if run.task(node.id).ended}
    return tasks | {name: (0, graph.decisions[name].plan) for name in run.decisions}


def _merged(graph: Graph, places: dict[str, tuple[int, int]], data: RunReplan) -> Workflow:
    """The whole workflow from here: what stays, and what is new."""
    tasks = [as_task(node) for node in graph.nodes.values() if node.id in places]
    taken = (item for item in graph.decisions.values() if item.id in places)
    decisions = [definitions.Decision(id=item.id, expression=item.expression) for item in taken]
    return Workflow(
        options=graph.options,
        tasks=(*tasks, *data.tasks),
        decisions=(*decisions, *data.decisions),
        result=graph.result,
    )
