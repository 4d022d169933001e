"""What pauses and decisions mean for the state; `evolve` folds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pml.processors.workflow.copying import replace
from pml.processors.workflow.folding import run_of, with_run
from pml.processors.workflow.state import Abort, Approval, Pause, Run, RunStatus, Session, TaskState
from pml.schemas import events as e
from pml.schemas.times import from_rfc3339


def remembered(session: Session, event: e.Event, data: e.Decided) -> Session:
    """The command that settled something is obeyed once."""
    if not (event.command_id and data.command_hash):
        return session
    return replace(session, obeyed={**session.obeyed, event.command_id: data.command_hash})


def ended_run(session: Session, run: Run, status: RunStatus) -> Session:
    """A run after its end: little is kept of it."""
    waits = replace(run.waits, pause=None, abort=None, since_ms=None)
    kept = replace(run, status=status, waits=waits)
    ended = replace(kept, graph=None, tasks={}, decisions={}, path=(), plans={})
    return with_run(session, ended)


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
    return run.live and (run.waits.pause is not None or waits_for_approval(run))


def waits_for_approval(run: Run, but: str = "") -> bool:
    """Whether a person has been asked about one of its calls, the task `but` left aside."""
    return any(task.awaits_approval for name, task in run.tasks.items() if name != but)


def _approval_requested(session: Session, event: e.Event, data: e.ApprovalRequested) -> Session:
    run, expires_ms = run_of(session, event), from_rfc3339(data.expires_at)
    approval = Approval(data.approval_id, data.arguments_hash, data.definition, expires_ms)
    asked = replace(run.task(data.task_id), approval=approval, retry_ms=None)
    return _with_approval(session, run, data.task_id, asked)


def _approval_granted(session: Session, event: e.Event, data: e.ApprovalGranted) -> Session:
    run = run_of(session, event)
    task = run.task(data.task_id)
    assert task.approval is not None
    approved = replace(task, approval=replace(task.approval, granted=True))
    return _with_approval(session, run, data.task_id, approved)


def _approval_denied(session: Session, event: e.Event, data: e.ApprovalSettled) -> Session:
    run = run_of(session, event)
    return _with_approval(session, run, data.task_id, replace(run.task(data.task_id), approval=None))


def _with_approval(session: Session, run: Run, task_id: str, task: TaskState) -> Session:
    changed = replace(run, tasks={**run.tasks, task_id: task})
    return with_run(session, waiting_or_not(changed, session.last_event_ms))


DECISIONS: dict[str, Callable[[Session, e.Event, Any], Session]] = {
    e.DecisionRequired.TYPE: _decision_required,
    e.DecisionMade.TYPE: _decision_made,
    e.ApprovalRequested.TYPE: _approval_requested,
    e.ApprovalGranted.TYPE: _approval_granted,
    e.ApprovalRejected.TYPE: _approval_denied,
    e.ApprovalExpired.TYPE: _approval_denied,
}
