"""`approval.decide`: a person approves or rejects a call, or does neither in time (DESIGN §4, Approvals)."""

from __future__ import annotations

from typing import Any

from pml.processors.workflow.advance import advance
from pml.processors.workflow.beforehand import decide_all, is_about_all, reach_all
from pml.processors.workflow.consent import status_without, withdraw
from pml.processors.workflow.draft import Draft
from pml.processors.workflow.obedience import Decision, NotWaiting, live_run, require_person
from pml.processors.workflow.outcomes import call_again
from pml.processors.workflow.settling import discard_for_task, fail_task
from pml.processors.workflow.state import Approval, Run
from pml.schemas.calls import CallError
from pml.schemas.commands import ApprovalDecide, Command
from pml.schemas.errors import Refused
from pml.schemas.events import ApprovalGranted, ApprovalRejected


class FourEyes(Refused):
    """Whoever submitted a run does not approve its calls."""

    code = "FOUR_EYES"


def decide_approval(draft: Draft, command: Command, data: ApprovalDecide, decision: Decision) -> None:
    """Begin a call that waits for a person, or fail its task.

    Raises:
        Refused: no person decides, or nothing waits under this id.
    """
    require_person(command, "approve or reject a call")
    run = live_run(draft, command.run_id)
    if draft.catalog.policy.four_eyes and command.principal == run.principal:
        raise FourEyes(f"{run.principal} submitted the run; approvals.four_eyes wants somebody else")
    if is_about_all(run, data.approval_id):
        decide_all(draft, run, data, decision)
        return
    task_id = waiting_task(run, data.approval_id)
    if task_id is None:
        raise NotWaiting(f"{data.approval_id} is not open in {run.run_id}: it was decided, or has expired")
    if data.decision == "approve":
        _grant(draft, run, task_id, _settled(run, task_id, data, decision))
    else:
        _reject(draft, run, task_id, decision, _settled(run, task_id, data, decision))
    advance(draft, run.run_id)


def reach_approval(draft: Draft, run: Run, approval_id: str) -> None:
    """Nobody answered in time: the task fails, or the run that was not to begin before."""
    if is_about_all(run, approval_id):
        reach_all(draft, run)
        return
    task_id = waiting_task(run, approval_id)
    if task_id is None or _question(run, task_id).expires_ms > draft.now_ms:
        return
    withdraw(draft, run.run_id, task_id, "timeout")
    message = f"nobody approved {approval_id} in time; set options.approval_timeout_s, or run it again"
    _fail(draft, run.run_id, task_id, CallError(code="APPROVAL_EXPIRED", type="PERMISSION", message=message))
    advance(draft, run.run_id)


def waiting_task(run: Run, approval_id: str) -> str | None:
    """The task that waits for this approval."""
    return next(
        (
            name
            for name, task in run.tasks.items()
            if task.awaits_approval and task.approval and task.approval.approval_id == approval_id
        ),
        None,
    )


def _grant(draft: Draft, run: Run, task_id: str, settled: dict[str, Any]) -> None:
    draft.emit(ApprovalGranted.model_validate(settled), run)
    call_again(draft, run.run_id, task_id)
    if draft.run(run.run_id).task(task_id).status == "failed":
        discard_for_task(draft, run.run_id, task_id, "unused")


def _reject(draft: Draft, run: Run, task_id: str, decision: Decision, settled: dict[str, Any]) -> None:
    draft.emit(ApprovalRejected.model_validate(settled), run)
    message = f"rejected by {decision.decided_by}" + (f": {decision.reason}" if decision.reason else "")
    _fail(draft, run.run_id, task_id, CallError(code="APPROVAL_REJECTED", type="PERMISSION", message=message))


def _settled(run: Run, task_id: str, data: ApprovalDecide, decision: Decision) -> dict[str, Any]:
    return {
        **decision.fields(),
        "approval_id": data.approval_id,
        "task_id": task_id,
        "tool": run.node(task_id).tool,
        "run_status": status_without(run, data.approval_id),
        "via": data.via,
    }


def _question(run: Run, task_id: str) -> Approval:
    """What a task that waits for a person has asked."""
    approval = run.task(task_id).approval
    assert approval is not None
    return approval


def _fail(draft: Draft, run_id: str, task_id: str, error: CallError) -> None:
    fail_task(draft, draft.run(run_id), task_id, error)
    discard_for_task(draft, run_id, task_id, "unused")
