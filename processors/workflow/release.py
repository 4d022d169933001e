"""A layer is released: each task is skipped, served, joined to a running speculation, or called."""

from __future__ import annotations

from pml.processors.learning.argument_patterns import pattern_of
from pml.processors.speculation.guard import may_be_early
from pml.processors.speculation.touches import any_overlap
from pml.processors.workflow.calls import Wanted, call_run
from pml.processors.workflow.consent import ask, given, word_for
from pml.processors.workflow.draft import Draft
from pml.processors.workflow.evolve import joined_calls
from pml.processors.workflow.graph import Node
from pml.processors.workflow.inquiries import give_up_overtaken_inquiries
from pml.processors.workflow.plans import score_overtaken
from pml.processors.workflow.preparation import (
    Prepared,
    Unprepared,
    prepare,
    started_fields,
    timeout_ms,
    ttl_ms,
)
from pml.processors.workflow.settling import (
    as_served_by,
    complete_task,
    discard_for_task,
    end_speculation,
    fail_task,
)
from pml.processors.workflow.state import Call, Run, Speculation
from pml.processors.workflow.verification import chosen, give_up_overtaken, note_hit
from pml.schemas.calls import CallError
from pml.schemas.events import LayerReleased, ServedBy, TaskSkipped, TaskStarted

SkipReason = tuple[str, str]


def release(draft: Draft, run_id: str, layer: int) -> None:
    """Start a layer. Its reads are served before its writes start (DESIGN §4, condition 3)."""
    run = draft.run(run_id)
    assert run.graph is not None
    open_ids = tuple(name for name in run.graph.layers[layer] if run.unreleased(name))
    draft.emit(LayerReleased(layer=layer, task_ids=open_ids), run)
    prepared = [item for name in open_ids if (item := _prepare_or_end(draft, run_id, name)) is not None]
    for item in sorted(prepared, key=lambda item: not item.reads):
        start_task(draft, run_id, item, attempt=draft.run(run_id).task(item.node.id).attempt + 1)


def _prepare_or_end(draft: Draft, run_id: str, task_id: str) -> Prepared | None:
    run = draft.run(run_id)
    node = run.node(task_id)
    reason = skip_reason(run, node)
    if reason is not None:
        skip_task(draft, run_id, node, *reason)
        return None
    broken = broken_condition(run, node)
    found = Unprepared(node, broken) if broken else prepare(draft, run, node)
    if isinstance(found, Unprepared):
        fail_task(draft, run, task_id, found.error)
        discard_for_task(draft, run_id, task_id, "unused")
        return None
    return found


def skip_reason(run: Run, node: Node) -> SkipReason | None:
    """Why a task does not run: a branch that was not taken, or a dependency that failed."""
    for condition in node.conditions:
        outcome = run.decisions.get(condition.node)
        if outcome not in {None, "error"} and not takes(run, condition.node, condition.outcome):
            return "condition", f"{condition.node} is {outcome}, not {condition.outcome}"
    for name in sorted(node.depends_on):
        task = run.task(name)
        if task.status in {"failed", "unknown"} or task.skip_reason == "dependency_failed":
            return "dependency_failed", name
    return None


def takes(run: Run, decision_id: str, outcome: str) -> bool:
    """Whether a decision that was taken opens the branch with this outcome."""
    assert run.graph is not None
    return run.graph.takes(decision_id, run.decisions[decision_id], outcome)


def broken_condition(run: Run, node: Node) -> CallError | None:
    """The error of a task behind a decision that could not be evaluated."""
    for condition in node.conditions:
        if run.decisions.get(condition.node) in {None, "error"}:
            message = f"task {node.id}: the decision {condition.node} could not be evaluated"
            return CallError(code="BAD_CONDITION", type="VALIDATION", message=message)
    return None


def skip_task(draft: Draft, run_id: str, node: Node, reason: str, because: str) -> None:
    """A task does not run, and neither does what was speculated for it."""
    fields = {
        "task_id": node.id,
        "layer": node.layer,
        "tool": node.tool,
        "reason": reason,
        "because": because,
    }
    draft.emit(TaskSkipped.model_validate(fields), draft.run(run_id))
    discard_for_task(draft, run_id, node.id, "branch_not_taken" if reason == "condition" else "unused")


def start_task(draft: Draft, run_id: str, prepared: Prepared, attempt: int, fresh: bool = False) -> None:
    """Serve a task, join it to a running speculation, or call its tool; or ask a person first.

    `fresh` asks for a real call whatever the cache holds.
    """
    if not given(draft.run(run_id), prepared):
        ask(draft, run_id, prepared)
        return
    reusable = prepared.reads and not fresh and prepared.consent is None
    entry = find_entry(draft, draft.run(run_id), prepared) if reusable else None
    if entry is None:
        _call_tool(draft, run_id, prepared, attempt)
    elif entry.status == "ready":
        _serve(draft, run_id, prepared, entry, attempt)
    else:
        _join(draft, run_id, prepared, entry, attempt)


def find_entry(draft: Draft, run: Run, prepared: Prepared) -> Speculation | None:
    """The speculated call with the same tool and arguments that may serve a run now."""
    allowed = run.speculation == "on" and prepared.granted.permission.cacheable
    if not allowed or draft.catalog.mode_of(draft.session.tenant, prepared.node.tool) != "on":
        return None
    return next(
        (
            entry
            for entry in draft.session.speculations.values()
            if _same_call(entry, prepared) and _usable(draft, entry, prepared)
        ),
        None,
    )


def _same_call(entry: Speculation, prepared: Prepared) -> bool:
    """The same tool, as it is defined now, with the same arguments, and what a write would have made void.

    An operator who corrects what a tool touches means what waits already, too: writes of that passed it over.
    """
    call = entry.call
    return (
        entry.tool == prepared.node.tool
        and call.arguments_hash == prepared.arguments_hash
        and call.definition == prepared.granted.definition
        and call.touches == prepared.touches
    )


def _usable(draft: Draft, entry: Speculation, prepared: Prepared) -> bool:
    """Whether a result is fresh and can still be had, or is on its way, no older than it may be and there in
    time.

    An operator who shortens a TTL means what waits already, too.
    """
    if entry.stale:
        return False
    call, kept_ms = entry.call, ttl_ms(draft.catalog, prepared)
    fresh = call.started_ms + min(call.ttl_ms, kept_ms) > draft.now_ms
    if entry.result is None:
        # What is never kept (TTL 0) may be joined for as long as it runs, by who would wait as long.
        in_time = call.timeout_ms <= timeout_ms(draft.catalog, prepared)
        return entry.status == "running" and in_time and (fresh or not (call.ttl_ms and kept_ms))
    return fresh and draft.has(entry.result)


def _emit_started(
    draft: Draft,
    run_id: str,
    prepared: Prepared,
    attempt: int,
    *,
    served_by: ServedBy = "call",
    entry: Speculation | None = None,
) -> None:
    run = draft.run(run_id)
    approval = word_for(run, prepared) if prepared.consent else None
    fields = started_fields(draft, prepared)
    if entry is not None and entry.status == "running":
        fields["call_id"] = entry.call.call_id
    draft.emit(
        TaskStarted(
            **fields,
            attempt=attempt,
            retry=prepared.granted.permission.retryable if _repeatable(prepared) else None,
            serves=entry.call.started_seq if entry else None,
            served_by=served_by,
            speculable=run.task(prepared.node.id).speculable,
            approval_id=approval.approval_id if approval else None,
            eligible=_eligible(draft, run, prepared) or None,
            argument_pattern=pattern_of(prepared.arguments, draft.catalog.policy.hash_key),
        ),
        run,
    )


def _eligible(draft: Draft, run: Run, prepared: Prepared) -> bool:
    """Whether a call could run early, whatever came of it: the share of those that did is told of these."""
    node = prepared.node
    if node.layer == 0 or prepared.consent is not None or run.speculation != "on":
        return False
    if run.sandbox is not None and _is_first_asked(run, node) and not run.task(node.id).speculated:
        return False  # nobody knew of it before its turn
    if draft.catalog.mode_of(draft.session.tenant, node.tool) != "on":
        return False
    return may_be_early(prepared.granted, bool(node.references)).allowed


def _is_first_asked(run: Run, node: Node) -> bool:
    """Whether a program in the sandbox asked for it just now; what follows in a capability was known."""
    assert run.graph is not None
    before = run.graph.layers[node.layer - 1]
    return all(run.graph.nodes[name].plan != node.plan for name in before)


def _repeatable(prepared: Prepared) -> bool:
    """Reads may be repeated freely; writes only where the operator declared them idempotent."""
    idempotent = prepared.granted.permission.idempotent
    return prepared.reads if idempotent is None else idempotent


def _call_tool(draft: Draft, run_id: str, prepared: Prepared, attempt: int) -> None:
    doomed = _overtaken(draft, prepared)
    _emit_started(draft, run_id, prepared, attempt)
    _send(draft, run_id, prepared)
    for entry in doomed:
        end_speculation(draft, entry, "discarded", "invalidated")
    if not prepared.reads:
        score_overtaken(draft, prepared.touches)
        give_up_overtaken(draft, prepared.touches)
        give_up_overtaken_inquiries(draft, prepared.touches)


def _overtaken(draft: Draft, prepared: Prepared) -> list[Speculation]:
    """The unserved speculations that a write makes void when it starts (those that a task joined stay)."""
    if prepared.reads:
        return []
    joined = joined_calls(draft.session)
    return [
        entry
        for call_id, entry in draft.session.speculations.items()
        if not entry.served and call_id not in joined and any_overlap(entry.call.touches, prepared.touches)
    ]


def _serve(draft: Draft, run_id: str, prepared: Prepared, entry: Speculation, attempt: int) -> None:
    served_by = as_served_by(entry)
    assert entry.result is not None
    _emit_started(draft, run_id, prepared, attempt, served_by=served_by, entry=entry)
    complete_task(
        draft,
        draft.run(run_id),
        prepared.node.id,
        entry.result,
        result_hash=entry.result_hash,
        result_bytes=entry.result_bytes,
        tool_ms=entry.tool_ms,
        duration_ms=0.0,
        saved_ms=entry.tool_ms,
        as_of_ms=entry.call.started_ms,
        started_at=None,
        prepared=prepared,
    )
    if served_by == "speculation":
        end_speculation(draft, entry, "served", "hit", saved_ms=entry.tool_ms)
        if chosen(entry.call, draft.catalog.policy.verified_share):
            note_hit(draft, draft.run(run_id), prepared, entry, entry.result_hash)


def _join(draft: Draft, run_id: str, prepared: Prepared, entry: Speculation, attempt: int) -> None:
    served_by: ServedBy = "repeat" if entry.call.call_id in joined_calls(draft.session) else "joined"
    _emit_started(draft, run_id, prepared, attempt, served_by=served_by, entry=entry)
    _send(draft, run_id, prepared)


def _send(draft: Draft, run_id: str, prepared: Prepared) -> None:
    run = draft.run(run_id)
    task = run.task(prepared.node.id)
    call: Call | None = task.call
    assert call is not None
    item = Wanted(run, prepared.node.id, prepared.node.tool, task.attempt, call, speculative=False)
    draft.calls.append(call_run(draft.session, item, prepared.arguments))
