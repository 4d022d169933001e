"""What pauses and decisions mean for the state; `evolve` folds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pml.processors.workflow.copying import replace
from pml.processors.workflow.folding import address_of, run_of, with_run, without
from pml.processors.workflow.graph import Deferred, Graph, grown
from pml.processors.workflow.learning import learned_name
from pml.processors.workflow.state import (
    Abort,
    Approval,
    Asked,
    Pause,
    Run,
    RunStatus,
    Session,
    TaskState,
)
from pml.schemas import events as e
from pml.schemas.times import from_rfc3339
from pml.schemas.workflow import Workflow

KEPT_RUNS_MAX = 16
"""Ended runs of a session that keep their tasks, so that they can be taken up again."""


def remembered(session: Session, event: e.Event, data: e.Decided) -> Session:
    """The command that settled something is obeyed once."""
    if not (event.command_id and data.command_hash):
        return session
    return replace(session, obeyed={**session.obeyed, event.command_id: data.command_hash})


def _run_scored(session: Session, event: e.Event, data: e.RunScored) -> Session:
    """A score is about a run and changes nothing of it; only that it was given is remembered."""
    return replace(session, scores={**session.scores, event.command_id or "": data.command_hash})


def ended_run(session: Session, run: Run, status: RunStatus) -> Session:
    """A run after its end. What may be taken up again keeps what that needs, of a bounded number of runs."""
    waits = replace(run.waits, pause=None, abort=None, since_ms=None, asked=None, consents={})
    ended = replace(run, status=status, waits=waits)
    if (status == "failed" and run.tasks) or ended.unknown:
        return _bounded(with_run(session, ended), but=run.run_id)
    return with_run(session, _stripped(ended))


def _stripped(run: Run) -> Run:
    return replace(run, graph=None, tasks={}, decisions={}, path=())


def _bounded(session: Session, but: str) -> Session:
    """Runs with a task of unknown outcome are given up last, older ones first."""
    kept = [run for run in session.runs.values() if not run.live and run.graph is not None]
    if len(kept) <= KEPT_RUNS_MAX:
        return session
    oldest = sorted((run for run in kept if run.run_id != but), key=lambda run: bool(run.unknown))
    given_up = {run.run_id for run in oldest[: len(kept) - KEPT_RUNS_MAX]}
    runs = {name: _stripped(run) if name in given_up else run for name, run in session.runs.items()}
    inquiries = {name: item for name, item in session.inquiries.items() if item.run_id not in given_up}
    return replace(session, runs=runs, inquiries=inquiries)


def failures(run: Run) -> tuple[str, ...]:
    """The tasks whose failure fails the run."""
    return tuple(
        name
        for name, task in run.tasks.items()
        if task.status == "unknown" or (task.status == "failed" and not run.tolerates(name))
    )


def _run_replanned(session: Session, event: e.Event, data: e.RunReplanned) -> Session:
    run = run_of(session, event)
    graph = Deferred(data.definition, data.kept, data.number)
    first = min(node.layer for node in graph.nodes.values() if node.plan == data.number)
    replanned = replace(
        run,
        graph=graph,
        tasks={name: task for name, task in run.tasks.items() if name in data.kept},
        replans=(*run.replans, address_of(data.payload_ref)),
        capability_id=None,
        first_failure="",
        waits=replace(run.waits, cleared=first, replanned=event.seq, consents={}),
    )
    return with_run(session, replanned)


def _run_expanded(session: Session, event: e.Event, data: e.RunExpanded) -> Session:
    run = run_of(session, event)
    graph: Graph = Deferred(data.definition, data.kept, data.number)
    if data.mode == "sandbox" or data.grows:
        assert run.graph is not None
        graph = grown(run.graph, Workflow.model_validate(data.definition), data.number)
    expanded = replace(
        run,
        graph=graph,
        replans=(*run.replans, address_of(data.payload_ref)),
        workflow_type=learned_name(data.workflow_type),
        capability_id=data.capability_id,
        sandbox=data.language or run.sandbox,
    )
    return with_run(session, expanded)


def _run_retried(session: Session, event: e.Event, data: e.RunRetried) -> Session:
    run = _reopened(run_of(session, event), data)
    assert run.graph is not None
    nodes = run.graph.nodes
    failed = [name for name in failures(run) if nodes[name].plan == len(run.replans)]
    going_on = replace(
        run,
        status="running",
        deadline_ms=from_rfc3339(data.deadline_at),
        first_failure=failed[0] if failed else "",
    )
    return with_run(session, going_on)


def _task_resolved(session: Session, event: e.Event, data: e.TaskResolved) -> Session:
    run = run_of(session, event)
    before = run.task(data.task_id)
    if data.resolution == "done":
        assert data.result_ref is not None
        result = address_of(data.result_ref)
        task = replace(before, status="completed", call=None, approval=None, result=result)
    elif data.resolution == "not_done":
        task = replace(before, status="failed", call=None, approval=None)
    else:
        task = before
    changed = replace(run, tasks={**run.tasks, data.task_id: task})
    if task.status == "failed" and not run.tolerates(data.task_id):
        changed = replace(changed, first_failure=run.first_failure or data.task_id)
    settled = replace(
        session,
        doubtful=without(session.doubtful, data.call_id),
        inquiries=without(session.inquiries, data.call_id),
    )
    return with_run(settled, _reopened(changed, data))


def _reopened(run: Run, data: e.Reopened) -> Run:
    """Nothing was begun for these tasks now; their attempts are counted on."""
    gone = {*data.task_ids, *data.decision_ids}
    if not gone:
        return run
    attempts = {name: run.task(name).attempt for name in data.task_ids}
    again = {name: TaskState(attempt=attempt, earlier=attempt) for name, attempt in attempts.items()}
    opened = replace(
        run,
        tasks={**run.tasks, **again},
        decisions={name: outcome for name, outcome in run.decisions.items() if name not in gone},
        path=tuple(name for name in run.path if name not in gone),
        layer=data.after_layer,
    )
    waits = replace(
        run.waits,
        cleared=data.after_layer + 1,
        errors=min(run.waits.errors, len(failures(opened))),
        consents={name: given for name, given in run.waits.consents.items() if name not in gone},
    )
    return replace(opened, waits=waits)


def _decision_required(session: Session, event: e.Event, data: e.DecisionRequired) -> Session:
    run = run_of(session, event)
    pause = Pause(data.checkpoint_id, data.following, from_rfc3339(data.deadline_at), data.on_timeout)
    waits = replace(run.waits, checkpoints=run.waits.checkpoints + 1, errors=data.errors, pause=pause)
    return with_run(session, waiting_or_not(replace(run, waits=waits), session.last_event_ms))


def _decision_made(session: Session, event: e.Event, data: e.DecisionMade) -> Session:
    run = run_of(session, event)
    pause, waits = run.waits.pause, replace(run.waits, pause=None)
    if data.choice == "abort":
        code = "DECISION_TIMEOUT" if data.timed_out else "ABORTED"
        waits = replace(waits, abort=Abort(code, data.decided_by, data.reason))
    elif pause is not None:
        waits = replace(waits, cleared=pause.following)
    return with_run(session, waiting_or_not(replace(run, waits=waits), session.last_event_ms))


def waiting_or_not(run: Run, time_ms: int) -> Run:
    """The run with the status that follows from what it waits for; its own time stands still meanwhile."""
    since_ms = run.waits.since_ms
    if waits_for_somebody(run):
        if since_ms is not None:
            return run
        return replace(run, status="waiting", waits=replace(run.waits, since_ms=time_ms))
    if since_ms is None:
        return run
    deadline_ms = run.deadline_ms + time_ms - since_ms
    waits = replace(run.waits, since_ms=None)
    return replace(run, status="running", deadline_ms=deadline_ms, waits=waits)


def waits_for_somebody(run: Run) -> bool:
    """Whether somebody has to decide before the run goes on."""
    return run.waits.pause is not None or waits_for_approval(run)


def waits_for_approval(run: Run, but: str = "") -> bool:
    """Whether a person has been asked about calls of it, the request `but` left aside."""
    return any(approval_id != but for approval_id in run.open_approvals())


def _approval_requested(session: Session, event: e.Event, data: e.ApprovalRequested) -> Session:
    run, expires_ms = run_of(session, event), from_rfc3339(data.expires_at)
    if data.calls is not None:
        calls = {
            call.task_id or call.tool: (call.arguments_hash or "", call.definition) for call in data.calls
        }
        return _with_waits(session, run, asked=Asked(data.approval_id, expires_ms, calls))
    approval = Approval(data.approval_id, data.arguments_hash, data.definition, expires_ms)
    asked = replace(run.task(data.task_id), approval=approval, retry_ms=None)
    return _with_approval(session, run, data.task_id, asked)


def _approval_granted(session: Session, event: e.Event, data: e.ApprovalGranted) -> Session:
    run = run_of(session, event)
    if _is_of_all(run, data):
        consents = {**run.waits.consents, **_consents(run, bool(data.computed))}
        return _with_waits(session, run, asked=None, consents=consents)
    task = run.task(data.task_id)
    assert task.approval is not None
    approved = replace(task, approval=replace(task.approval, granted=True))
    return _with_approval(session, run, data.task_id, approved)


def _approval_denied(session: Session, event: e.Event, data: e.ApprovalSettled) -> Session:
    run = run_of(session, event)
    if _is_of_all(run, data):
        return _with_waits(session, run, asked=None)
    return _with_approval(session, run, data.task_id, replace(run.task(data.task_id), approval=None))


def _is_of_all(run: Run, data: e.ApprovalSettled) -> bool:
    return run.waits.asked is not None and run.waits.asked.approval_id == data.approval_id


def _consents(run: Run, computed: bool) -> dict[str, Approval]:
    """What a yes to several calls is good for: those whose arguments were shown, unless they said all."""
    asked = run.waits.asked
    assert asked is not None
    return {
        name: Approval(asked.approval_id, arguments_hash, definition, asked.expires_ms, granted=True)
        for name, (arguments_hash, definition) in asked.calls.items()
        if arguments_hash or computed
    }


def _with_waits(session: Session, run: Run, **changes: Any) -> Session:
    changed = replace(run, waits=replace(run.waits, **changes))
    return with_run(session, waiting_or_not(changed, session.last_event_ms))


def _with_approval(session: Session, run: Run, task_id: str, task: TaskState) -> Session:
    changed = replace(run, tasks={**run.tasks, task_id: task})
    return with_run(session, waiting_or_not(changed, session.last_event_ms))


DECISIONS: dict[str, Callable[[Session, e.Event, Any], Session]] = {
    e.DecisionRequired.TYPE: _decision_required,
    e.DecisionMade.TYPE: _decision_made,
    e.RunExpanded.TYPE: _run_expanded,
    e.RunReplanned.TYPE: _run_replanned,
    e.RunRetried.TYPE: _run_retried,
    e.RunScored.TYPE: _run_scored,
    e.TaskResolved.TYPE: _task_resolved,
    e.ApprovalRequested.TYPE: _approval_requested,
    e.ApprovalGranted.TYPE: _approval_granted,
    e.ApprovalRejected.TYPE: _approval_denied,
    e.ApprovalExpired.TYPE: _approval_denied,
}
