"""A run begins, or waits for a person's word about all of its calls that need one (DESIGN §4, Approvals).

Every tool of a run is known before it runs, so that a person is asked before, not after half of it is done.
Nothing of the run begins meanwhile, not even early.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pml.processors.workflow.advance import advance, as_error, summary
from pml.processors.workflow.consent import NOBODY, status_without
from pml.processors.workflow.deciding import record_choice
from pml.processors.workflow.draft import Draft
from pml.processors.workflow.obedience import Decision
from pml.processors.workflow.release import skip_task
from pml.processors.workflow.settling import discard_all
from pml.processors.workflow.shown import about, ask_about_all, calls_to_show, withdraw_all
from pml.processors.workflow.state import Run
from pml.schemas.commands import ApprovalDecide
from pml.schemas.events import ApprovalGranted, ApprovalRejected, RunFailed


def begin(draft: Draft, run_id: str, tools: Iterable[str] = ()) -> None:
    """Ask a person about the calls of a run that need one, if there are any; else go on.

    Args:
        tools: what the program of a run names that has no tasks before it asks for some.
    """
    run = draft.run(run_id)
    if _asks_before(draft, run):
        calls, omitted = calls_to_show(draft, run, tools)
        if calls:
            ask_about_all(draft, run, calls, omitted)
    advance(draft, run_id)


def is_about_all(run: Run, approval_id: str) -> bool:
    """Whether this is the open request about all calls of a run."""
    return run.waits.asked is not None and run.waits.asked.approval_id == approval_id


def decide_all(draft: Draft, run: Run, data: ApprovalDecide, decision: Decision) -> None:
    """Let a run begin, or end it before it has."""
    asked = run.waits.asked
    assert asked is not None
    settled: dict[str, Any] = {**decision.fields(), **about(run, asked)}
    settled |= {"run_status": status_without(run, data.approval_id), "via": data.via}
    if data.decision == "approve":
        draft.emit(ApprovalGranted.model_validate({**settled, "computed": data.computed or None}), run)
        advance(draft, run.run_id)
        return
    draft.emit(ApprovalRejected.model_validate(settled), run)
    message = f"rejected by {decision.decided_by}" + (f": {decision.reason}" if decision.reason else "")
    _end(draft, run.run_id, "APPROVAL_REJECTED", message, decision)


def reach_all(draft: Draft, run: Run) -> None:
    """Nobody answered in time: the run ends before it has begun."""
    asked = run.waits.asked
    assert asked is not None
    if asked.expires_ms > draft.now_ms:
        return
    withdraw_all(draft, run.run_id, "timeout")
    message = f"nobody approved {asked.approval_id} in time; set options.approval_timeout_s, or run it again"
    _end(draft, run.run_id, "APPROVAL_EXPIRED", message, NOBODY)


def _asks_before(draft: Draft, run: Run) -> bool:
    assert run.graph is not None
    return (run.graph.options.approve or draft.catalog.policy.approve) == "before"


def _end(draft: Draft, run_id: str, code: str, message: str, decision: Decision) -> None:
    """A run that was replanned may wait for more than this word; then that is decided with it."""
    run = draft.run(run_id)
    assert run.graph is not None
    if run.waits.pause is not None:
        record_choice(draft, run, "abort", decision, timed_out=decision == NOBODY)
    for node in run.graph.nodes.values():
        if run.unreleased(node.id):
            skip_task(draft, run_id, node, "run_ended", code.lower())
    discard_all(draft, run_id, reason="unused")
    run = draft.run(run_id)
    draft.emit(RunFailed(**summary(draft, run), error=as_error(code, message, list(run.unknown))), run)
