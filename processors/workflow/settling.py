"""How attempts and speculations end: the events that close what a starting event opened."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pml.processors.learning.argument_patterns import pattern_of
from pml.processors.workflow.arguments import Unresolved, Values, resolve_strictly
from pml.processors.workflow.calls import addresses_of
from pml.processors.workflow.draft import Draft, full_arguments
from pml.processors.workflow.evolve import joined_calls
from pml.processors.workflow.folding import coordinate_of
from pml.processors.workflow.inputs import Address, payload_value
from pml.processors.workflow.learning import threshold_context
from pml.processors.workflow.plans import score, score_all, score_completed
from pml.processors.workflow.preparation import Prepared, resolve_node
from pml.processors.workflow.state import Call, Run, Source, Speculation, TaskState
from pml.processors.workflow.verification import give_up_of_run
from pml.processors.workflow.verify_rule import AMBIGUOUS, patience_ms, rule_of
from pml.schemas.calls import CallError
from pml.schemas.errors import PMLError
from pml.schemas.events import (
    Fate,
    ServedBy,
    SpeculationEnded,
    SpeculationForgotten,
    TaskCompleted,
    TaskFailed,
    TaskUnknown,
    TaskUnverified,
)
from pml.schemas.sanitiser import sanitise, sanitise_and_preview, sanitise_text
from pml.schemas.times import to_rfc3339


def recorded_arguments(
    draft: Draft, run: Run, task_id: str, call: Call | None, sources: tuple[Source, ...] = ()
) -> Any:
    """The arguments of a task as its ending event keeps them: sanitised; None where they are gone."""
    arguments = _full_arguments(draft, run, task_id, call, sources)
    return None if arguments is None else sanitise(arguments)


def _full_arguments(
    draft: Draft, run: Run, task_id: str, call: Call | None, sources: tuple[Source, ...] = ()
) -> dict[str, Any] | None:
    try:
        resolved = resolve_node(
            draft, run, run.node(task_id), strictly=False, call=call, sources=addresses_of(sources)
        )
    except PMLError:
        return None
    return None if isinstance(resolved, Unresolved) else resolved.arguments


def _ended_fields(draft: Draft, run: Run, task_id: str, prepared: Prepared | None = None) -> dict[str, Any]:
    """An attempt that could not begin has a number of its own, and no call."""
    task, node = run.task(task_id), run.node(task_id)
    begun = task.status == "running"
    call = task.call if begun else None
    full = prepared.arguments if prepared else _full_arguments(draft, run, task_id, call)
    return {
        "task_id": task_id,
        "attempt": task.attempt if begun else task.attempt + 1,
        "layer": node.layer,
        "tool": node.tool,
        "call_id": call.call_id if call else None,
        "arguments": prepared.sanitised if prepared else None if full is None else sanitise(full),
        "argument_pattern": None if full is None else pattern_of(full, draft.catalog.policy.hash_key),
        "arguments_hash": call.arguments_hash if call else "",
        "served_by": task.served_by if begun else "call",
        "speculable": task.speculable,
        "early": ("speculated" if task.speculated else "missed") if begun and task.eligible else None,
    }


def complete_task(
    draft: Draft,
    run: Run,
    task_id: str,
    result: Address,
    *,
    result_hash: str,
    result_bytes: int,
    tool_ms: float,
    duration_ms: float,
    saved_ms: float,
    as_of_ms: int,
    started_at: str | None,
    prepared: Prepared | None = None,
    served_by: ServedBy | None = None,
) -> None:
    """A task has its result, by whatever way it came.

    Args:
        prepared: its call, where it is at hand; else the arguments are resolved again.
        served_by: where the first that joined gave up, the next one is the hit in its place.
    """
    kept, preview = sanitise_and_preview(payload_value(draft.payload(result)))
    fields = _ended_fields(draft, run, task_id, prepared)
    task = run.task(task_id)
    assert task.call is not None
    cached = task.replaces and make_room(draft, result_bytes)
    draft.emit(
        TaskCompleted(
            **fields | ({"served_by": served_by} if served_by else {}),
            started_at=started_at,
            duration_ms=duration_ms,
            result=kept,
            preview=preview,
            result_ref=coordinate_of(result),
            result_hash=result_hash,
            result_bytes=result_bytes,
            tool_ms=tool_ms,
            saved_ms=saved_ms,
            as_of=to_rfc3339(as_of_ms),
            cached=cached or None,
        ),
        run,
    )
    score_completed(draft, run.run_id, task_id, task.call, tool_ms)


def fail_task(
    draft: Draft,
    run: Run,
    task_id: str,
    error: CallError,
    *,
    retry_at_ms: int | None = None,
    started_at: str | None = None,
    duration_ms: float = 0.0,
) -> None:
    """An attempt failed; another one follows at `retry_at_ms` where that is given."""
    draft.emit(
        TaskFailed(
            **_ended_fields(draft, run, task_id),
            started_at=started_at,
            duration_ms=duration_ms,
            error=safe_error(error),
            retry_at=None if retry_at_ms is None else to_rfc3339(retry_at_ms),
            final=retry_at_ms is None,
        ),
        run,
    )
    if retry_at_ms is None:
        score(draft, run.run_id, task_id, "failed")


def unknown_task(
    draft: Draft,
    run: Run,
    task_id: str,
    error: CallError,
    *,
    started_at: str | None = None,
    duration_ms: float = 0.0,
) -> None:
    """Nobody knows whether an unsafe call happened; where its entry declares how, that is asked later."""
    fields = _ended_fields(draft, run, task_id)
    verify_at = _verify_at(draft, run, task_id)
    draft.emit(
        TaskUnknown(
            **fields,
            started_at=started_at,
            duration_ms=duration_ms,
            error=safe_error(error),
            verify_at=verify_at,
        ),
        run,
    )
    if run.task(task_id).crossed and rule_of(draft.catalog.permissions, run.node(task_id).tool):
        draft.emit(_unverified(draft.run(run.run_id), task_id), run)


def _unverified(run: Run, task_id: str) -> TaskUnverified:
    """Its tool is not asked: nobody could tell the effects of two writes apart."""
    task, node = run.task(task_id), run.node(task_id)
    return TaskUnverified(
        task_id=task_id,
        attempt=task.attempt,
        layer=node.layer,
        tool=node.tool,
        unknown_call_id=task.call.call_id if task.call else task_id,
        error=AMBIGUOUS,
    )


def _verify_at(draft: Draft, run: Run, task_id: str) -> str | None:
    """When its tool's `verify` is asked; not where another write of the same things ran beside it."""
    task = run.task(task_id)
    rule = rule_of(draft.catalog.permissions, run.node(task_id).tool)
    if rule is None or task.call is None or task.crossed:
        return None
    return to_rfc3339(draft.now_ms + patience_ms(rule, task.call.timeout_ms))


def safe_error(error: CallError) -> CallError:
    """An error whose message is safe to keep."""
    return error.model_copy(update={"message": sanitise_text(error.message), "details": {}})


def end_speculation(
    draft: Draft,
    entry: Speculation,
    fate: Fate,
    reason: str,
    *,
    tool_ms: float | None = None,
    saved_ms: float = 0.0,
) -> None:
    """What became of a speculation; a call that was not answered yet is cancelled.

    Args:
        tool_ms: how long the tool took, given where the call was answered just now.
    """
    run = draft.run(entry.run_id)
    cancelled = entry.status == "running" and tool_ms is None
    spent = tool_ms if tool_ms is not None else _spent_ms(draft, entry)
    draft.emit(
        SpeculationEnded(
            call_id=entry.call.call_id,
            started_seq=entry.call.started_seq,
            task_id=entry.task_id,
            tool=entry.tool,
            kind=entry.kind,
            arguments=_arguments_of(draft, run, entry),
            arguments_hash=entry.call.arguments_hash,
            confidence=entry.confidence,
            fate=fate,
            reason=reason,
            tool_ms=spent,
            saved_ms=saved_ms,
            cancelled=cancelled,
            context=threshold_context(run) if entry.confidence < 1 else None,
        ),
        run,
    )
    if cancelled:
        draft.cancel(run, entry.call.call_id, reason)
    if fate != "served":
        end_each(draft, _deeper(draft, entry.call.call_id), "discarded", reason)


def end_each(draft: Draft, entries: Iterable[Speculation], fate: Fate, reason: str) -> None:
    """End several; one may have ended with another, whose result it was taken from."""
    for entry in list(entries):
        if entry.call.call_id in draft.session.speculations:
            end_speculation(draft, entry, fate, reason)


def _deeper(draft: Draft, call_id: str) -> list[Speculation]:
    """What took its arguments from a speculated result, and that no task waits for."""
    deeper = [
        entry
        for entry in draft.session.speculations.values()
        if not entry.served and any(source.call_id == call_id for source in entry.sources)
    ]
    joined = joined_calls(draft.session) if deeper else frozenset()
    return [entry for entry in deeper if entry.call.call_id not in joined]


def _arguments_of(draft: Draft, run: Run, entry: Speculation) -> Any:
    """None where the run does not have the task any more as it was when the speculation began."""
    if entry.plan is not None:
        return _predicted_arguments(draft, entry, entry.plan)
    if not run.live or entry.call.started_seq < run.waits.replanned:
        return None
    return recorded_arguments(draft, run, entry.task_id, entry.call, entry.sources)


def _predicted_arguments(draft: Draft, entry: Speculation, plan: Address) -> Any:
    """Those of a predicted call; None where they are gone, or were taken from a result."""
    if entry.sources or not draft.has(plan):
        return None
    resolved = resolve_strictly(full_arguments(draft.payload(plan), entry.task_id), Values({}, {}))
    return None if isinstance(resolved, Unresolved) else sanitise(resolved.arguments)


def _spent_ms(draft: Draft, entry: Speculation) -> float:
    """The tool time so far of a call that is being given up."""
    if entry.status == "ready":
        return entry.tool_ms
    return float(max(0, draft.now_ms - entry.call.started_ms))


def make_room(draft: Draft, wanted_bytes: int) -> bool:
    """Let results go, used ones first, then the oldest, until one of this size fits; whether it does now."""
    limit = draft.catalog.policy.cache_bytes
    if wanted_bytes > limit:
        return False
    waiting = [entry for entry in draft.session.speculations.values() if entry.status == "ready"]
    used: list[Speculation] = []
    for entry in sorted(waiting, key=lambda entry: (not entry.served, entry.call.started_seq)):
        held_bytes = _cached_bytes(draft) - sum(item.result_bytes for item in used)
        if held_bytes + wanted_bytes <= limit:
            break
        if entry.served:
            used.append(entry)
        else:
            end_each(draft, [entry], "discarded", "evicted")
    if used:
        forgotten = tuple(entry.call.call_id for entry in used)
        draft.emit(SpeculationForgotten(call_ids=forgotten), draft.run(used[0].run_id))
    return True


def _cached_bytes(draft: Draft) -> int:
    return sum(item.result_bytes for item in draft.session.speculations.values() if item.status == "ready")


def abandon_call(draft: Draft, run: Run, call: Call, reason: str) -> None:
    """A task waits no longer for its call, which is cancelled unless another one does."""
    if joined_tasks(draft, call.call_id):
        return
    entry = draft.session.speculations.get(call.call_id)
    if entry is not None:
        end_speculation(draft, entry, "discarded", "aborted")
    else:
        draft.cancel(run, call.call_id, reason)


def discard_all(draft: Draft, run_id: str, reason: str) -> None:
    """Discard what a run's speculation left unused, and what was only planned."""
    end_each(draft, unused(draft, run_id), "discarded", reason)
    score_all(draft, run_id, reason)
    if reason != "unused":
        give_up_of_run(draft, run_id)


def discard_for_task(draft: Draft, run_id: str, task_id: str, reason: str) -> None:
    """Discard what was speculated for a task that does not run."""
    mine = (entry for entry in unused(draft, run_id) if entry.task_id == task_id)
    end_each(draft, mine, "discarded", reason)
    score(draft, run_id, task_id, reason)


def unused(draft: Draft, run_id: str) -> list[Speculation]:
    """What began for tasks of a run, that nobody was served by and that no task, of any run, waits for."""
    joined = joined_calls(draft.session)
    return [
        entry
        for call_id, entry in draft.session.speculations.items()
        if entry.began_for(run_id) and not entry.served and call_id not in joined
    ]


def joined_tasks(draft: Draft, call_id: str) -> list[tuple[str, str, TaskState]]:
    """The running tasks that wait for a call: run id, task id and state."""
    return [
        (run.run_id, task_id, task)
        for run in draft.session.runs.values()
        if run.live
        for task_id, task in run.tasks.items()
        if task.status == "running" and task.call and task.call.call_id == call_id
    ]


def as_served_by(entry: Speculation) -> ServedBy:
    """How a use of a cached result is told: the first one is the hit."""
    return "repeat" if entry.served else "speculation"
