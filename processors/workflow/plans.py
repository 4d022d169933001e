"""Calls that would have begun early: in shadow mode, or with a little more confidence (DESIGN §4).

A plan is written when it is made and held against what came: a task that then ran with the same arguments
would have been served, and so much sooner; a branch that was not taken would have been waste.
"""

from __future__ import annotations

from dataclasses import dataclass

from pml.processors.speculation.touches import any_overlap
from pml.processors.workflow.draft import Draft
from pml.processors.workflow.learning import threshold_context
from pml.processors.workflow.state import Call, Foreseen, Plan
from pml.schemas.events import SpeculationScored

MARGIN = 0.05
"""A candidate this far below its threshold is scored, else one that nothing reaches would never move."""

FORESEEN_MOST = 16
"""Predicted calls that were not begun and would wait for later runs: they are part of a session's record."""

# As with speculations that ran: the rest is nobody's fault and teaches nothing.
_LESSONS = frozenset({"unused", "expired", "branch_not_taken", "failed"})


def score(
    draft: Draft,
    run_id: str,
    task_id: str,
    reason: str,
    *,
    success: bool = False,
    saved_ms: float | None = None,
    tool_ms: float | None = None,
) -> None:
    """Hold the plan of a task, if there is one, against what came.

    Args:
        tool_ms: what the task's own call took, where it was made.
    """
    plan = draft.run(run_id).plans.get(task_id)
    if plan is not None:
        node = draft.run(run_id).node(task_id)
        planned = Planned(run_id, task_id, node.tool, plan, node.layer)
        _score(draft, planned, reason, success=success, saved_ms=saved_ms, tool_ms=tool_ms)


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan with what its event names it by."""

    run_id: str
    task_id: str
    tool: str
    plan: Plan
    layer: int = 0


def _score(
    draft: Draft,
    planned: Planned,
    reason: str,
    *,
    success: bool = False,
    saved_ms: float | None = None,
    tool_ms: float | None = None,
) -> None:
    run, plan = draft.run(planned.run_id), planned.plan
    teaches = plan.confidence < 1 and (success or reason in _LESSONS)
    scored = SpeculationScored(
        task_id=planned.task_id,
        layer=planned.layer,
        tool=planned.tool,
        kind=plan.kind,
        confidence=plan.confidence,
        threshold=plan.threshold,
        context=threshold_context(run) if teaches else None,
        success=success,
        reason=reason,
        shadow=plan.shadow or None,
        saved_ms=saved_ms,
        tool_ms=tool_ms if plan.shadow else None,
        wasted_ms=_wasted_ms(draft, plan, planned.tool, tool_ms) if plan.shadow and not success else None,
    )
    draft.emit(scored, run)


def modelled_running(draft: Draft) -> int:
    """The calls that would be running early now, had shadow mode begun what it planned.

    A tool is taken to need what it needed last; until that is known, until the task's own call begins.
    """
    foreseen = sum(
        item.plan.shadow and _would_run(draft, item.plan, item.tool)
        for item in draft.session.foreseen.values()
    )
    return foreseen + sum(
        plan.shadow
        and run.task(task_id).status == "pending"
        and _would_run(draft, plan, run.node(task_id).tool)
        for run in draft.runs
        for task_id, plan in run.plans.items()
    )


def _would_run(draft: Draft, plan: Plan, tool: str) -> bool:
    pace_ms = draft.session.paces.get(tool)
    return pace_ms is None or draft.now_ms < plan.planned_ms + pace_ms


def _wasted_ms(draft: Draft, plan: Plan, tool: str, tool_ms: float | None) -> float:
    """The tool time of a plan in vain: what its tool takes, at most until it would have been cancelled."""
    if tool_ms is not None:
        return tool_ms
    elapsed_ms = float(max(0, draft.now_ms - plan.planned_ms))
    return min(elapsed_ms, draft.session.paces.get(tool, elapsed_ms))


def score_all(draft: Draft, run_id: str, reason: str) -> None:
    """No task of a run's plans will run any more."""
    for task_id in draft.run(run_id).plans:
        score(draft, run_id, task_id, reason)


def score_completed(draft: Draft, run_id: str, task_id: str, call: Call, tool_ms: float) -> None:
    """A task has the result of its own call, which a speculation would have begun at the plan's time."""
    _score_foreseen_of(draft, run_id, task_id, call, tool_ms)
    plan = draft.run(run_id).plans.get(task_id)
    if plan is None:
        return
    reason = _unfit(plan, call)
    if reason:
        score(draft, run_id, task_id, reason, tool_ms=tool_ms)
        return
    told, saved_ms = _gained(plan, call, tool_ms)
    score(draft, run_id, task_id, told, success=True, saved_ms=saved_ms, tool_ms=tool_ms)


def drop_foreseen(draft: Draft, before_ms: int) -> None:
    """A run that began then has ended without what was foreseen earlier: what would still have run, or is too
    old, would have been in vain. The rest would wait, the latest `FORESEEN_MOST`."""
    earlier = [item for item in draft.session.foreseen.values() if item.plan.planned_ms <= before_ms]
    earlier.sort(key=lambda item: item.plan.planned_ms)
    for place, item in enumerate(earlier):
        if item.plan.expires_ms <= draft.now_ms:
            _score(draft, _planned(item), "expired")
        elif len(earlier) - place > FORESEEN_MOST or _would_run(draft, item.plan, item.tool):
            _score(draft, _planned(item), "unused")


def _score_foreseen_of(draft: Draft, run_id: str, task_id: str, call: Call, tool_ms: float) -> None:
    """A task made the call that was foreseen."""
    tool = draft.run(run_id).node(task_id).tool
    for item in list(draft.session.foreseen.values()):
        if item.tool != tool or item.plan.arguments_hash != call.arguments_hash:
            continue
        if item.plan.expires_ms <= call.started_ms:
            _score(draft, _planned(item), "expired", tool_ms=tool_ms)
        else:
            told, saved_ms = _gained(item.plan, call, tool_ms)
            _score(draft, _planned(item), told, success=True, saved_ms=saved_ms, tool_ms=tool_ms)


def _planned(item: Foreseen) -> Planned:
    """A predicted call is of no layer of a run: it is told as of the first."""
    return Planned(item.run_id, item.task_id, item.tool, item.plan)


def _gained(plan: Plan, call: Call, tool_ms: float) -> tuple[str, float]:
    """How a speculation begun at the plan's time would have served a call, and what it would have saved."""
    ahead_ms = float(max(0, call.started_ms - plan.planned_ms))
    return "hit" if ahead_ms >= tool_ms else "joined", min(ahead_ms, tool_ms)


def score_overtaken(draft: Draft, touches: tuple[str, ...]) -> None:
    """A write begins: what was planned of what it touches would have been thrown away."""
    for run in draft.runs:
        for task_id, plan in run.plans.items():
            if any_overlap(plan.touches, touches):
                score(draft, run.run_id, task_id, "invalidated")
    for item in list(draft.session.foreseen.values()):
        if any_overlap(item.plan.touches, touches):
            _score(draft, _planned(item), "invalidated")


def _unfit(plan: Plan, call: Call) -> str:
    """Why a speculated result would not have served a call."""
    if call.arguments_hash != plan.arguments_hash:
        return "superseded"
    return "expired" if plan.expires_ms <= call.started_ms else ""
