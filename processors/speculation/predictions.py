"""What is done about the calls that a prediction names: begun, planned, or why neither (DESIGN §4).

They meet every condition of a speculation, and are called with nothing that is not written in the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pml.processors.speculation import candidates, planner
from pml.processors.speculation.guard import may_be_early, may_run_early
from pml.processors.speculation.mode import strictest
from pml.processors.speculation.touches import any_overlap
from pml.processors.workflow.arguments import Values
from pml.processors.workflow.calls import Wanted, call_run
from pml.processors.workflow.draft import Draft
from pml.processors.workflow.evolve import unsettled_touches
from pml.processors.workflow.folding import coordinate_of
from pml.processors.workflow.graph import Node, build
from pml.processors.workflow.learning import threshold_context
from pml.processors.workflow.plans import MARGIN
from pml.processors.workflow.preparation import Prepared, Unprepared, prepare_predicted, started_fields
from pml.processors.workflow.release import find_entry
from pml.processors.workflow.state import Internal, Run
from pml.schemas.catalog import SpeculationMode
from pml.schemas.events import PredictionCandidate, PredictionMade, SpeculationPlanned, SpeculationStarted
from pml.schemas.prediction import PredictAnswer, Predicted
from pml.schemas.sanitiser import sanitise_text
from pml.schemas.times import to_rfc3339

_NAME_BYTES_MAX = 300
_REASON_BYTES_MAX = 100


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a candidate. `calls` are those that can be made now: to begin, or to plan."""

    candidate: Predicted
    outcome: str
    calls: tuple[Prepared, ...] = ()


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What holds for all candidates: the run that completed, the threshold, what writes may change yet."""

    run: Run
    threshold: float
    pending: tuple[str, ...]


def act_on(draft: Draft, item: Internal, answer: PredictAnswer) -> None:
    """Tell what may come next, and begin what may be begun of it."""
    run = draft.run(item.run_id)
    threshold = _threshold(draft, run)
    verdicts = tuple(_verdicts(draft, item, answer, threshold))
    draft.emit(_made(item, answer, threshold, verdicts), run)
    for verdict in verdicts:
        for prepared in verdict.calls:
            if verdict.outcome == "begun":
                _begin(draft, run, prepared, verdict.candidate.confidence, threshold)
            else:
                _plan(draft, run, prepared, verdict, threshold)


def _threshold(draft: Draft, run: Run) -> float:
    context = threshold_context(run)
    tenant = draft.session.tenant
    return draft.catalog.threshold(tenant, context.user, context.domain, context.workflow_type).value


def _verdicts(draft: Draft, item: Internal, answer: PredictAnswer, threshold: float) -> Iterator[Verdict]:
    """One a candidate, in their order; what is begun for one leaves less budget for the next."""
    circumstances = Circumstances(draft.run(item.run_id), threshold, tuple(_pending(draft)))
    nodes = _nodes(answer)
    overtaken = len(draft.session.runs) > item.arguments["runs"]
    free, free_modelled = planner.free_budget(draft), planner.free_modelled_budget(draft)
    for candidate in answer.candidates:
        mine = tuple(nodes[name] for name in candidate.tasks if name in nodes)
        mode = _mode(draft, circumstances.run, mine)
        found = "overtaken" if overtaken else _judged(draft, circumstances, candidate, mine)
        if isinstance(found, str):
            yield Verdict(candidate, found)
        elif mode == "off":
            yield Verdict(candidate, "switched_off")
        elif candidate.confidence < threshold:
            yield Verdict(candidate, "below_threshold", found)
        elif len(found) > (free_modelled if mode == "shadow" else free):
            yield Verdict(candidate, "budget")
        else:
            free_modelled -= len(found)
            free -= len(found) if mode == "on" else 0
            yield Verdict(candidate, "begun" if mode == "on" else "planned", found)


def _nodes(answer: PredictAnswer) -> dict[str, Node]:
    return dict(build(answer.workflow).nodes) if answer.workflow else {}


def _pending(draft: Draft) -> list[str]:
    """What writes that run, or that a live run still has before it, may change."""
    found = unsettled_touches(draft.session)
    for run in draft.runs:
        if run.live and run.graph is not None:
            found += candidates.pending_touches(draft, run, len(run.graph.layers))
    return found


def _mode(draft: Draft, run: Run, nodes: tuple[Node, ...]) -> SpeculationMode:
    tenant = draft.session.tenant
    return strictest((run.speculation, *(draft.catalog.mode_of(tenant, node.tool) for node in nodes)))


def _judged(
    draft: Draft, circumstances: Circumstances, candidate: Predicted, nodes: tuple[Node, ...]
) -> tuple[Prepared, ...] | str:
    """The calls of a candidate that can be made now, or why there are none."""
    if not nodes:
        return sanitise_text(candidate.reason or "no_arguments", _REASON_BYTES_MAX)
    if not all(_may_ever(draft, node) for node in nodes):
        return "not_safe"
    if candidate.confidence < circumstances.threshold - MARGIN:
        return "below_threshold"
    first = [node for node in nodes if not node.depends_on]
    prepared = [prepare_predicted(draft, node, Values({}, {})) for node in first]
    calls = tuple(each for each in prepared if isinstance(each, Prepared))
    refused = next((each.error.code.lower() for each in prepared if isinstance(each, Unprepared)), None)
    if refused is not None:
        return refused
    # Its arguments may hold what results said: those do not leave this machine early (condition 5).
    verdicts = (may_be_early(each.granted, from_results=True) for each in calls)
    unsafe = next((verdict.reason for verdict in verdicts if not verdict.allowed), None)
    if unsafe is not None:
        return unsafe
    if any(any_overlap(each.touches, circumstances.pending) for each in calls):
        return "pending_write"
    return tuple(each for each in calls if find_entry(draft, circumstances.run, each) is None) or "cached"


def _may_ever(draft: Draft, node: Node) -> bool:
    server = draft.catalog.server_of(node.tool)
    listed = server is not None and server.status == "listed"
    return listed and may_run_early(node.tool, draft.catalog.permissions, server)


def _made(
    item: Internal, answer: PredictAnswer, threshold: float, verdicts: tuple[Verdict, ...]
) -> PredictionMade:
    candidates = tuple(
        PredictionCandidate(
            name=sanitise_text(each.candidate.name, _NAME_BYTES_MAX),
            likelihood=each.candidate.likelihood,
            confidence=each.candidate.confidence,
            outcome=each.outcome,
            task_ids=tuple(prepared.node.id for prepared in each.calls),
        )
        for each in verdicts
    )
    return PredictionMade(
        call_id=item.call_id,
        model=answer.model,
        learner=answer.learner,
        history=tuple(item.arguments["history"]),
        threshold=threshold,
        candidates=candidates,
    )


def _begin(draft: Draft, run: Run, prepared: Prepared, confidence: float, threshold: float) -> None:
    fields = started_fields(draft, prepared)
    started = SpeculationStarted(
        **fields,
        kind="prediction",
        confidence=confidence,
        threshold=threshold,
        plan=coordinate_of(draft.source.address),
    )
    draft.emit(started, run)
    entry = draft.session.speculations[fields["call_id"]]
    item = Wanted(run, prepared.node.id, prepared.node.tool, 1, entry.call, True, plan=entry.plan)
    draft.calls.append(call_run(draft.session, item, prepared.arguments))


def _plan(draft: Draft, run: Run, prepared: Prepared, verdict: Verdict, threshold: float) -> None:
    fields = started_fields(draft, prepared)
    planned = SpeculationPlanned(
        task_id=prepared.node.id,
        layer=0,
        tool=prepared.node.tool,
        kind="prediction",
        confidence=verdict.candidate.confidence,
        threshold=threshold,
        arguments_hash=prepared.arguments_hash,
        touches=prepared.touches,
        expires_at=to_rfc3339(draft.now_ms + round(fields["ttl_s"] * 1_000)),
        shadow=verdict.outcome == "planned",
    )
    draft.emit(planned, run)
