"""What to run before it is asked for: the next layer's safe calls (DESIGN §4; spec `speculateNextLayer`).

Asked after each answered call. A candidate must meet every condition of DESIGN §4; those that the
budget alone holds back are named, because their real calls count as misses.
"""

from __future__ import annotations

from pml.processors.speculation.guard import can_speculate, may_write
from pml.processors.speculation.touches import any_overlap, touches_of
from pml.processors.workflow.calls import Wanted, call_run
from pml.processors.workflow.draft import Draft
from pml.processors.workflow.evolve import HOUR_MS, joined_calls
from pml.processors.workflow.graph import Node
from pml.processors.workflow.preparation import Prepared, Unprepared, prepare_strictly, started_fields
from pml.processors.workflow.release import find_entry, skip_reason
from pml.processors.workflow.state import Run, Session, TaskState
from pml.schemas.events import SpeculationHeld, SpeculationStarted


def speculate(draft: Draft, run_id: str) -> None:
    """Start what may run early of the run's next layer, in the order of its definition."""
    run = draft.run(run_id)
    if not (run.live and run.speculation == "on" and draft.catalog.speculates):
        return
    held: list[str] = []
    affordable = True
    for node in _open_nodes(draft, run):
        affordable = affordable and has_budget(draft)
        if not affordable and run.task(node.id).speculable:
            continue
        prepared = _candidate(draft, run, node)
        if prepared is None:
            continue
        if affordable:
            _start(draft, run_id, prepared)
        else:
            held.append(node.id)
    if held:
        draft.emit(SpeculationHeld(layer=run.layer + 1, task_ids=tuple(held)), draft.run(run_id))


def _open_nodes(draft: Draft, run: Run) -> list[Node]:
    """The tasks of the next layer that are sure to run, know their arguments and have not been tried."""
    assert run.graph is not None
    if run.layer + 1 >= len(run.graph.layers):
        return []
    speculations = draft.session.speculations.values()
    tried = {entry.task_id for entry in speculations if entry.run_id == run.run_id}
    return [
        run.node(name)
        for name in run.graph.layers[run.layer + 1]
        if name not in tried and _is_open(run, run.node(name))
    ]


def _is_open(run: Run, node: Node) -> bool:
    """A speculation that failed or expired is not begun again (`barred`)."""
    task = run.task(node.id)
    resolvable = all(run.task(name).status == "completed" for name in node.references)
    return task.status == "pending" and not task.barred and resolvable and certain(run, node)


def _candidate(draft: Draft, run: Run, node: Node) -> Prepared | None:
    """The call of a task that may run now; None where any condition does not hold."""
    prepared = prepare_strictly(draft, run, node)
    if isinstance(prepared, Unprepared) or not _allowed(draft, prepared):
        return None
    if any_overlap(prepared.touches, pending_touches(draft, run, node.layer)):
        return None
    return None if find_entry(draft, run, prepared) else prepared


def certain(run: Run, node: Node) -> bool:
    """Whether a task will run as far as is known: its branch is taken, nothing before it failed."""
    decided = all(run.decisions.get(condition.node) not in {None, "error"} for condition in node.conditions)
    return decided and skip_reason(run, node) is None


def _allowed(draft: Draft, prepared: Prepared) -> bool:
    node = prepared.node
    server = draft.catalog.server_of(node.tool)
    if server is None or server.status != "listed":
        return False
    verdict = can_speculate(
        node.tool, prepared.arguments, draft.catalog.permissions, server, from_results=bool(node.references)
    )
    return verdict.allowed


def pending_touches(draft: Draft, run: Run, layer: int) -> list[str]:
    """What unfinished unsafe calls of the session may still change (DESIGN §4, condition 3)."""
    found = [touch for touches in draft.session.doubtful.values() for touch in touches]
    for other in draft.session.runs.values():
        for task in other.tasks.values():
            if other.live and task.status == "running":
                found.extend(_writes(task))
    assert run.graph is not None
    for node in run.graph.nodes.values():
        task = run.task(node.id)
        if node.layer < layer and not task.ended and task.status != "running":
            found.extend(_writes(task) if task.call else _unstarted(draft, node))
    return found


def _writes(task: TaskState) -> tuple[str, ...]:
    return task.call.touches if task.call and task.call.effect == "write" else ()


def _unstarted(draft: Draft, node: Node) -> tuple[str, ...]:
    """A task before its call: its arguments are not known, so it may touch all that its entry names."""
    found = draft.catalog.permissions.find(node.tool)
    if found is not None and not may_write(node.tool, found[1], draft.catalog.server_of(node.tool)):
        return ()
    return touches_of(node.tool, found[1].touches if found else None, None, None)


def has_budget(draft: Draft) -> bool:
    """Whether one more speculative call may be started (DESIGN §4, condition 6)."""
    session, budget = draft.session, draft.catalog.policy.budget
    accounts = session.accounts
    wasted_ms = accounts.wasted_ms if accounts.waste_hour == draft.now_ms // HOUR_MS else 0.0
    return (
        _running(session) < budget.concurrent
        and accounts.started < budget.calls
        and wasted_ms < budget.wasted_ms_per_hour
    )


def _running(session: Session) -> int:
    """Speculative calls that run and that no task has joined."""
    joined = joined_calls(session)
    return sum(
        entry.status == "running" and call_id not in joined for call_id, entry in session.speculations.items()
    )


def _start(draft: Draft, run_id: str, prepared: Prepared) -> None:
    fields = started_fields(draft, prepared)
    draft.emit(SpeculationStarted(**fields, kind="layer", confidence=1.0, threshold=0.0), draft.run(run_id))
    entry = draft.session.speculations[fields["call_id"]]
    item = Wanted(draft.run(run_id), prepared.node.id, prepared.node.tool, 1, entry.call, speculative=True)
    draft.calls.append(call_run(draft.session, item, prepared.arguments))
