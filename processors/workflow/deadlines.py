"""Deadlines are part of the state; the shell arms the earliest of each session (DESIGN §2, rule 5)."""

from __future__ import annotations

from collections.abc import Iterator

from pml.processors.workflow.evolve import joined_calls
from pml.processors.workflow.inputs import Deadline
from pml.processors.workflow.state import Run, Session
from pml.schemas.commands import Command, DeadlineReach


def deadline(session: Session) -> Deadline | None:
    """The earliest deadline that is still to be decided about."""
    return min(_deadlines(session), key=lambda item: (item.due_at_ms, item.run_id, item.target), default=None)


def deadline_command(session: Session, item: Deadline) -> Command:
    """The command that says a deadline is due; its id is derived, so repeats are the same command."""
    return Command.model_construct(
        type=DeadlineReach.TYPE,
        version=DeadlineReach.VERSION,
        command_id=f"due_{item.kind}:{item.run_id}:{item.attempt}:{item.due_at_ms}"[:128],
        tenant=session.tenant,
        principal="pml",
        session_id=session.session_id,
        run_id=item.run_id,
        traceparent=None,
        data=DeadlineReach(
            kind=item.kind, target=item.target, attempt=item.attempt, due_at_ms=item.due_at_ms
        ),
    )


def _deadlines(session: Session) -> Iterator[Deadline]:
    joined = joined_calls(session)
    for run in session.runs.values():
        if run.live:
            yield from _of_run(run)
    for item in session.internals.values():
        yield Deadline("internal", item.run_id, item.call_id, 1, item.deadline_ms)
    for call_id, entry in session.speculations.items():
        if entry.status == "running" and call_id not in joined:
            yield Deadline("speculation", entry.run_id, call_id, 1, entry.call.deadline_ms)
        elif entry.kind == "prediction" and entry.status == "ready" and not entry.served:
            # Nothing else may happen in the session until then; the sweep before each input ends it.
            yield Deadline("speculation", entry.run_id, call_id, 1, entry.expires_ms)
    for call_id, again in session.verifications.items():
        yield Deadline("speculation", again.run_id, call_id, 1, again.call.deadline_ms)
    for call_id, inquiry in session.inquiries.items():
        due_ms = inquiry.call.deadline_ms if inquiry.call else inquiry.due_ms
        yield Deadline("verify", inquiry.run_id, call_id, 1, due_ms)


def _of_run(run: Run) -> Iterator[Deadline]:
    for task_id, task in run.tasks.items():
        if task.status == "running" and task.call:
            yield Deadline("task", run.run_id, task_id, task.attempt, task.call.deadline_ms)
        elif task.status == "pending" and task.retry_ms is not None:
            yield Deadline("retry", run.run_id, task_id, task.attempt, task.retry_ms)
        if task.approval is not None and task.awaits_approval:
            yield Deadline("approval", run.run_id, task.approval.approval_id, 0, task.approval.expires_ms)
    asked = run.waits.asked
    if asked is not None:
        yield Deadline("approval", run.run_id, asked.approval_id, 0, asked.expires_ms)
    pause = run.waits.pause
    if pause is not None:
        yield Deadline("decision", run.run_id, pause.checkpoint_id, 0, pause.deadline_ms)
    if run.status == "running" and _has_something_to_end(run):
        yield Deadline("run", run.run_id, "", 0, run.deadline_ms)


def _has_something_to_end(run: Run) -> bool:
    """Unsafe calls that run are awaited: past the run's time nothing else is left to decide.

    A run that has no tasks yet, or asks its program for more, waits for them.
    """
    assert run.graph is not None
    asks = run.sandbox is not None and not any(task.status == "running" for task in run.tasks.values())
    return (
        asks
        or not run.graph.nodes
        or any(run.task(name).status == "pending" or _is_safe_call(run, name) for name in run.graph.nodes)
    )


def _is_safe_call(run: Run, task_id: str) -> bool:
    task = run.task(task_id)
    return task.status == "running" and task.call is not None and task.call.effect == "read"
