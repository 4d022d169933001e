"""What to run before it is asked for (DESIGN §4; spec `speculateNextLayer`).

Asked after each answered call. Candidates that meet every condition begin; in shadow mode they are planned
only; those that the budget alone holds back are named, because their real calls count as misses.
"""

from __future__ import annotations

from collections.abc import Iterator

from pml.processors.speculation import candidates
from pml.processors.speculation.mode import strictest
from pml.processors.workflow.calls import Wanted, call_run
from pml.processors.workflow.draft import Draft
from pml.processors.workflow.evolve import HOUR_MS, joined_calls
from pml.processors.workflow.graph import Node
from pml.processors.workflow.plans import modelled_running, score
from pml.processors.workflow.preparation import started_fields
from pml.processors.workflow.state import Run, Session
from pml.schemas.catalog import SpeculationMode
from pml.schemas.events import SpeculationHeld, SpeculationPlanned, SpeculationStarted
from pml.schemas.times import to_rfc3339


def speculate(draft: Draft, run_id: str) -> None:
    """Start, or in shadow mode plan, what may run early of a live run's next layers, the nearest first."""
    run = draft.run(run_id)
    held: list[candidates.Candidate] = []
    affordable = True
    for node, mode in _nodes(draft, run):
        affordable = affordable and has_budget(draft)
        room = affordable if mode == "on" else has_modelled_budget(draft)
        task = run.task(node.id)
        if not room and (task.speculable if mode == "on" else task.held):
            continue
        candidate = candidates.find_candidate(draft, run, node)
        if candidate is None:
            continue
        if not candidate.confident or (mode == "shadow" and room):
            _plan(draft, run_id, candidate)
        elif mode == "shadow":
            _hold_in_shadow(draft, run_id, candidate)
        elif affordable:
            _start(draft, run_id, candidate)
        else:
            held.append(candidate)
    if held:
        _hold(draft, run_id, held)


def _nodes(draft: Draft, run: Run) -> Iterator[tuple[Node, SpeculationMode]]:
    """The tasks to look at, and whether each may be called or only planned."""
    if strictest((run.speculation, draft.catalog.general_mode)) == "off":
        return
    for node in candidates.open_nodes(draft, run):
        mode = strictest((run.speculation, draft.catalog.mode_of(draft.session.tenant, node.tool)))
        if mode != "off":
            yield node, mode


def has_budget(draft: Draft) -> bool:
    """Whether one more speculative call may be started (DESIGN §4, condition 6)."""
    return free_budget(draft) > 0


def has_modelled_budget(draft: Draft) -> bool:
    """Whether one more call could have been started, had all that shadow mode planned been."""
    return free_modelled_budget(draft) > 0


def free_budget(draft: Draft) -> int:
    """How many more speculative calls may be started now."""
    session, budget = draft.session, draft.catalog.policy.budget
    accounts = session.accounts
    wasted_ms = accounts.wasted_ms if accounts.waste_hour == draft.now_ms // HOUR_MS else 0.0
    if wasted_ms >= budget.wasted_ms_per_hour:
        return 0
    return max(0, min(budget.concurrent - _running(session), budget.calls - accounts.started))


def free_modelled_budget(draft: Draft) -> int:
    """How many more calls could have been started, had all that shadow mode planned been."""
    session, budget = draft.session, draft.catalog.policy.budget
    accounts, hour = session.accounts, draft.now_ms // HOUR_MS
    wasted_ms = accounts.wasted_ms if accounts.waste_hour == hour else 0.0
    wasted_ms += accounts.shadow_wasted_ms if accounts.shadow_hour == hour else 0.0
    if wasted_ms >= budget.wasted_ms_per_hour:
        return 0
    running = _running(session) + modelled_running(draft)
    return max(0, min(budget.concurrent - running, budget.calls - accounts.started - accounts.planned))


def _running(session: Session) -> int:
    """Speculative calls that run and that no task has joined."""
    joined = joined_calls(session)
    return sum(
        entry.status == "running" and call_id not in joined for call_id, entry in session.speculations.items()
    )


def _start(draft: Draft, run_id: str, candidate: candidates.Candidate) -> None:
    """A plan that lacked confidence until now is scored by what becomes of the call instead."""
    prepared = candidate.prepared
    score(draft, run_id, prepared.node.id, "superseded")
    fields = started_fields(draft, prepared)
    started = SpeculationStarted(
        **fields,
        kind=candidate.kind,
        confidence=candidate.confidence,
        threshold=candidate.threshold,
        sources=tuple(source.call_id for source in candidate.sources) or None,
        influence=candidate.influence,
    )
    draft.emit(started, draft.run(run_id))
    entry = draft.session.speculations[fields["call_id"]]
    item = Wanted(draft.run(run_id), prepared.node.id, prepared.node.tool, 1, entry.call, True, entry.sources)
    draft.calls.append(call_run(draft.session, item, prepared.arguments))


def _plan(draft: Draft, run_id: str, candidate: candidates.Candidate) -> None:
    """Shadow mode holds for candidates that would have begun; the others lack confidence in any mode."""
    node = candidate.prepared.node
    fields = started_fields(draft, candidate.prepared)
    planned = SpeculationPlanned(
        task_id=node.id,
        layer=node.layer,
        tool=node.tool,
        kind=candidate.kind,
        confidence=candidate.confidence,
        threshold=candidate.threshold,
        arguments_hash=candidate.prepared.arguments_hash,
        touches=candidate.prepared.touches,
        expires_at=to_rfc3339(draft.now_ms + round(fields["ttl_s"] * 1_000)),
        shadow=candidate.confident,
        influence=candidate.influence,
    )
    draft.emit(planned, draft.run(run_id))


def _hold_in_shadow(draft: Draft, run_id: str, candidate: candidates.Candidate) -> None:
    """Named once, and counted as no miss: in shadow mode nothing is."""
    node = candidate.prepared.node
    unsure = (candidate.confidence,) if candidate.confidence < 1 else None
    held = SpeculationHeld(
        layer=node.layer, task_ids=(node.id,), confidences=unsure, shadow=True, tool=node.tool
    )
    draft.emit(held, draft.run(run_id))


def _hold(draft: Draft, run_id: str, held: list[candidates.Candidate]) -> None:
    layer = min(candidate.prepared.node.layer for candidate in held)
    names = tuple(candidate.prepared.node.id for candidate in held)
    confidences = tuple(candidate.confidence for candidate in held)
    unsure = confidences if min(confidences) < 1 else None
    draft.emit(SpeculationHeld(layer=layer, task_ids=names, confidences=unsure), draft.run(run_id))
