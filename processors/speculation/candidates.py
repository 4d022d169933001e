"""Which tasks could run before their turn, with which arguments, and how sure it is that they will run.

Every condition of DESIGN §4 but the budget is looked at here, the cheap ones first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pml.processors.memory.influence import influenced
from pml.processors.speculation.guard import can_speculate, may_run_early, may_write
from pml.processors.speculation.touches import any_overlap, touches_of
from pml.processors.workflow.calls import addresses_of
from pml.processors.workflow.draft import Draft
from pml.processors.workflow.evolve import unsettled_touches
from pml.processors.workflow.graph import Node
from pml.processors.workflow.internal import influence_of
from pml.processors.workflow.learning import threshold_context
from pml.processors.workflow.plans import MARGIN
from pml.processors.workflow.preparation import Prepared, Unprepared, prepare_strictly
from pml.processors.workflow.release import find_entry, skip_reason
from pml.processors.workflow.state import Call, Run, Source
from pml.schemas.events import SpeculationKind, SpeculationUnresolvable
from pml.schemas.sanitiser import sanitise_text


@dataclass(frozen=True, slots=True)
class Candidate:
    """A call that could begin now. A task that is sure to run has confidence 1 and needs no threshold.

    `influence` is how much of the confidence comes from what became of its tool before (memory).
    """

    prepared: Prepared
    kind: SpeculationKind
    confidence: float
    threshold: float
    sources: tuple[Source, ...]
    influence: float | None = None

    @property
    def confident(self) -> bool:
        """Whether it is likely enough that its task will run."""
        return self.confidence >= self.threshold


def open_nodes(draft: Draft, run: Run) -> Iterator[Node]:
    """The tasks of the next layers that have not been tried, the nearest first.

    While a person is asked whether a program may begin, nothing of it does.
    """
    if run.waits.asked is not None:
        return
    assert run.graph is not None
    layers = run.graph.layers
    tried = {item.task_id for item in draft.session.speculations.values() if item.began_for(run.run_id)}
    tried |= {task_id for task_id, plan in run.plans.items() if plan.shadow}
    first = run.layer + 1
    doomed: dict[str, bool] = {}
    for number in range(first, min(first + draft.catalog.policy.speculation_depth, len(layers))):
        for name in layers[number]:
            node = run.node(name)
            if name in tried or run.task(name).barred or not run.unreleased(name) or _undecidable(run, node):
                continue
            if skip_reason(run, node) is None and not (number > first and _doomed(run, name, doomed)):
                yield node


def find_candidate(draft: Draft, run: Run, node: Node) -> Candidate | None:
    """The call of a task that may begin now, or be planned; None where any condition does not hold."""
    server = draft.catalog.server_of(node.tool)
    if server is None or server.status != "listed":
        return None
    if not may_run_early(node.tool, draft.catalog.permissions, server):
        return None
    sources = _sources(draft, run, node)
    if sources is None:
        return None
    confidence, kind = _confidence(draft, run, node, sources)
    moved = influence_of(draft.session, run.run_id, node.tool) if confidence < 1 else None
    confidence = influenced(confidence, moved)
    threshold = _threshold(draft, run) if confidence < 1 else 0.0
    if confidence < threshold - MARGIN or _planned_already(run, node, confidence, threshold):
        return None
    prepared = _prepared(draft, run, node, sources)
    return None if prepared is None else Candidate(prepared, kind, confidence, threshold, sources, moved)


def pending_touches(draft: Draft, run: Run, layer: int) -> list[str]:
    """What unfinished unsafe calls of the session may still change (DESIGN §4, condition 3)."""
    found = unsettled_touches(draft.session)
    assert run.graph is not None
    for node in run.graph.nodes.values():
        task = run.task(node.id)
        if node.layer < layer and not task.ended and task.status != "running":
            found.extend(_writes(task.call) if task.call else _unstarted(draft, node))
    return found


def _undecidable(run: Run, node: Node) -> bool:
    """Whether a task will fail because a decision before it could not be evaluated."""
    return any(run.decisions.get(condition.node) == "error" for condition in node.conditions)


def _doomed(run: Run, task_id: str, known: dict[str, bool]) -> bool:
    """Whether a task that has not begun will be skipped because something before it failed."""
    if task_id not in known:
        known[task_id] = False
        reason = skip_reason(run, run.node(task_id))
        waiting = (name for name in run.node(task_id).depends_on if run.task(name).status == "pending")
        known[task_id] = (reason is not None and reason[0] == "dependency_failed") or (
            reason is None and any(_doomed(run, name, known) for name in waiting)
        )
    return known[task_id]


def _sources(draft: Draft, run: Run, node: Node) -> tuple[Source, ...] | None:
    """The waiting results that its arguments need; None where something that it reads is not known yet."""
    found: list[Source] = []
    for name in sorted(node.references):
        if run.task(name).ended:
            continue
        source = _waiting(draft, run, name)
        if source is None:
            return None
        found.append(source)
    return tuple(found)


def _waiting(draft: Draft, run: Run, task_id: str) -> Source | None:
    for call_id, entry in draft.session.speculations.items():
        mine = entry.began_for(run.run_id) and entry.task_id == task_id and not entry.served
        if mine and entry.result is not None and not entry.stale and entry.expires_ms > draft.now_ms:
            return Source(task_id, call_id, entry.result)
    return None


def _confidence(
    draft: Draft, run: Run, node: Node, sources: tuple[Source, ...]
) -> tuple[float, SpeculationKind]:
    """How likely a task, and what it reads, will run: undecided conditions multiply, each counted once."""
    undecided = {
        (condition.node, condition.outcome)
        for name in (node.id, *_read_early(draft, sources))
        for condition in run.node(name).conditions
        if condition.node not in run.decisions
    }
    confidence = 1.0
    for decision_id, outcome in sorted(undecided):
        tenant, workflow_type = draft.session.tenant, run.workflow_type
        confidence *= draft.catalog.branch_probability(tenant, workflow_type, decision_id, outcome)
    return confidence, "branch" if undecided else "layer"


def _read_early(draft: Draft, sources: tuple[Source, ...]) -> Iterator[str]:
    """The tasks whose waiting results are read, through others too."""
    for source in sources:
        yield source.task_id
        entry = draft.session.speculations.get(source.call_id)
        yield from _read_early(draft, entry.sources if entry else ())


def _threshold(draft: Draft, run: Run) -> float:
    context = threshold_context(run)
    return draft.catalog.threshold(
        draft.session.tenant, context.user, context.domain, context.workflow_type
    ).value


def _planned_already(run: Run, node: Node, confidence: float, threshold: float) -> bool:
    return node.id in run.plans and confidence < threshold


def _prepared(draft: Draft, run: Run, node: Node, sources: tuple[Source, ...]) -> Prepared | None:
    prepared = prepare_strictly(draft, run, node, addresses_of(sources))
    if isinstance(prepared, Unprepared):
        if prepared.error.code == "UNRESOLVED_ARGUMENT" and not sources:
            _mark_unresolvable(draft, run, prepared)
        return None
    server, permissions = draft.catalog.server_of(node.tool), draft.catalog.permissions
    derived = bool(node.references)
    if not can_speculate(node.tool, prepared.arguments, permissions, server, derived).allowed:
        return None
    if any_overlap(prepared.touches, pending_touches(draft, run, node.layer)):
        return None
    return None if find_entry(draft, run, prepared) else prepared


def _mark_unresolvable(draft: Draft, run: Run, found: Unprepared) -> None:
    node = found.node
    reason = sanitise_text(found.error.message)
    draft.emit(SpeculationUnresolvable(task_id=node.id, layer=node.layer, tool=node.tool, reason=reason), run)


def _writes(call: Call) -> tuple[str, ...]:
    return call.touches if call.effect == "write" else ()


def _unstarted(draft: Draft, node: Node) -> tuple[str, ...]:
    """A task before its call: its arguments are not known, so it may touch all that its entry names."""
    found = draft.catalog.permissions.find(node.tool)
    if found is not None and not may_write(node.tool, found[1], draft.catalog.server_of(node.tool)):
        return ()
    return touches_of(node.tool, found[1].touches if found else None, None, None)
