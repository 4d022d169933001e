"""`deadline.reach`: time-outs that nobody else noticed, retries, and the end of a run's time."""

from __future__ import annotations

from pml.processors.workflow.aborting import stop
from pml.processors.workflow.advance import advance
from pml.processors.workflow.answering import give_up_internal
from pml.processors.workflow.approvals import reach_approval
from pml.processors.workflow.deciding import reach_decision
from pml.processors.workflow.draft import Draft
from pml.processors.workflow.inquiries import reach_inquiry
from pml.processors.workflow.outcomes import call_again, retry_at_ms
from pml.processors.workflow.settling import (
    abandon_call,
    end_speculation,
    fail_task,
    joined_tasks,
    unknown_task,
)
from pml.processors.workflow.state import TaskState
from pml.processors.workflow.verification import give_up_overdue
from pml.schemas.calls import CallError
from pml.schemas.commands import Command, DeadlineReach

_BRIDGE_GONE = CallError(
    code="TIMEOUT",
    type="TIMEOUT",
    message="the bridge gave no answer in time; is it running?",
    retryable=True,
)
_RUN_OVER = CallError(code="RUN_TIMEOUT", type="TIMEOUT", message="the run's time is over")


def reach_deadline(draft: Draft, command: Command, data: DeadlineReach) -> None:
    """Act on a deadline that is really due; anything else changes nothing and is sent again.

    The session is one that is known: nobody else has deadlines.
    """
    if data.due_at_ms > draft.now_ms:
        return
    if data.kind == "speculation":
        _give_up_speculation(draft, data)
        return
    if data.kind == "internal":
        _give_up_internal(draft, data.target)
        return
    if data.kind == "verify":
        reach_inquiry(draft, data.target)
        return
    run_id = command.run_id or ""
    run = next((run for run in draft.runs if run.run_id == run_id and run.live), None)
    if run is None:
        return
    if data.kind == "decision":
        reach_decision(draft, run, data.target)
    elif data.kind == "approval":
        reach_approval(draft, run, data.target)
    elif data.kind == "run":
        if run.status == "running" and run.deadline_ms <= draft.now_ms:
            _end_run(draft, run_id)
    else:
        _reach_task(draft, run_id, data)


def _give_up_internal(draft: Draft, name: str) -> None:
    item = draft.session.internals.get(name)
    if item is not None and item.deadline_ms <= draft.now_ms:
        give_up_internal(draft, item)


def _give_up_speculation(draft: Draft, data: DeadlineReach) -> None:
    if data.target in draft.session.verifications:
        give_up_overdue(draft, data.target)
        return
    entry = draft.session.speculations.get(data.target)
    if entry is None or entry.status != "running" or joined_tasks(draft, data.target):
        return
    if entry.call.deadline_ms <= draft.now_ms:
        end_speculation(draft, entry, "failed", "timeout")


def _reach_task(draft: Draft, run_id: str, data: DeadlineReach) -> None:
    task = draft.run(run_id).task(data.target)
    if task.attempt != data.attempt:
        return
    if data.kind == "retry" and task.status == "pending" and task.retry_ms is not None:
        if task.retry_ms <= draft.now_ms:
            call_again(draft, run_id, data.target)
            advance(draft, run_id)
    elif (
        data.kind == "task"
        and task.status == "running"
        and task.call
        and task.call.deadline_ms <= draft.now_ms
    ):
        _give_up_task(draft, run_id, data.target, task)
        advance(draft, run_id)


def _give_up_task(draft: Draft, run_id: str, task_id: str, task: TaskState) -> None:
    run = draft.run(run_id)
    assert task.call is not None
    if task.call.effect == "write":
        unknown_task(draft, run, task_id, _BRIDGE_GONE)
        return
    fail_task(draft, run, task_id, _BRIDGE_GONE, retry_at_ms=retry_at_ms(draft, run, task, _BRIDGE_GONE))
    abandon_call(draft, run, task.call, "timeout")


def _end_run(draft: Draft, run_id: str) -> None:
    """Skip what has not started, give up safe calls; an unsafe one that runs is awaited."""
    stop(draft, run_id, "options.timeout_s", _RUN_OVER)
    advance(draft, run_id)
