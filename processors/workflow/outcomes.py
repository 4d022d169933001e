"""`call.ended`: what a call's answer does to tasks and to the cache (DESIGN §4, §5)."""

from __future__ import annotations

from pml.processors.workflow.advance import advance
from pml.processors.workflow.answering import end_internal
from pml.processors.workflow.draft import Draft
from pml.processors.workflow.folding import coordinate_of
from pml.processors.workflow.inputs import payload_value
from pml.processors.workflow.preparation import Unprepared, prepare
from pml.processors.workflow.release import start_task
from pml.processors.workflow.settling import (
    complete_task,
    discard_for_task,
    end_speculation,
    fail_task,
    joined_tasks,
    make_room,
    unknown_task,
)
from pml.processors.workflow.state import Call, Run, Speculation, TaskState
from pml.processors.workflow.verification import chosen, end_verification, note_hit
from pml.schemas.calls import CallEnded, CallError
from pml.schemas.canonical import canonical_json, keyed_hash
from pml.schemas.errors import PayloadGone
from pml.schemas.events import ServedBy, SpeculationReady
from pml.schemas.times import to_rfc3339

# After these nobody can say whether an unsafe call that started had its effect.
_UNCERTAIN = frozenset({"TIMEOUT", "CONNECTION_LOST", "CANCELLED"})


def end_call(draft: Draft, outcome: CallEnded) -> None:
    """Settle everybody who waits for a call; an answer that nobody waits for changes nothing."""
    internal = draft.session.internals.get(outcome.call_id)
    if internal is not None:
        end_internal(draft, internal, outcome)
        return
    if outcome.call_id in draft.session.verifications:
        end_verification(draft, outcome)
        return
    waiting = sorted(joined_tasks(draft, outcome.call_id), key=lambda item: item[2].served_by != "joined")
    entry = draft.session.speculations.get(outcome.call_id)
    if entry is not None and entry.status == "running":
        _end_speculative(draft, entry, outcome, waiting)
    else:
        for run_id, task_id, task in waiting:
            end_task(draft, run_id, task_id, task, outcome)
    for run_id in dict.fromkeys(run_id for run_id, _, _ in waiting):
        advance(draft, run_id)


def failure_of(outcome: CallEnded) -> CallError:
    """The error of an outcome that is not ok."""
    if outcome.error is not None:
        return outcome.error
    return CallError(code=outcome.status.upper(), message=f"the call ended as {outcome.status}")


def uncertain(outcome: CallEnded) -> bool:
    """Whether an unsafe call may have had its effect although it did not succeed.

    An argument that is gone when calls are sent again says nothing about the call that was sent before.
    """
    code = failure_of(outcome).code
    return code == PayloadGone.code or (outcome.started_at is not None and code in _UNCERTAIN)


def measure(draft: Draft, outcome: CallEnded) -> tuple[str, int]:
    """Hash and bytes of what a call gave."""
    data = canonical_json(payload_value(outcome.result))
    return keyed_hash(data, draft.catalog.policy.hash_key), len(data)


def _end_speculative(
    draft: Draft, entry: Speculation, outcome: CallEnded, waiting: list[tuple[str, str, TaskState]]
) -> None:
    if outcome.status != "ok" or outcome.result is None:
        _fail_speculative(draft, entry, outcome, waiting)
        return
    if not entry.stale and not _kept(draft, entry, outcome, bool(waiting)):
        return
    for number, (run_id, task_id, task) in enumerate(waiting):
        as_of_ms = entry.call.started_ms
        if number:
            _complete(draft, run_id, task_id, outcome, as_of_ms=as_of_ms, served_by="repeat")
            continue
        saved_ms = _saved_ms(draft, task, outcome)
        _complete(draft, run_id, task_id, outcome, as_of_ms=as_of_ms, saved_ms=saved_ms, served_by="joined")
        end_speculation(draft, entry, "served", "joined", tool_ms=outcome.duration_ms, saved_ms=saved_ms)
        _note_hit(draft, run_id, task_id, entry, outcome)
    expired = entry.call.started_ms + entry.call.ttl_ms <= draft.now_ms
    if not waiting and expired:
        end_speculation(draft, draft.session.speculations[entry.call.call_id], "discarded", "expired")


def _note_hit(draft: Draft, run_id: str, task_id: str, entry: Speculation, outcome: CallEnded) -> None:
    if entry.call.ttl_ms and chosen(entry.call, draft.catalog.policy.verified_share):
        run = draft.run(run_id)
        note_hit(draft, run, prepare(draft, run, run.node(task_id)), entry, measure(draft, outcome)[0])


def _kept(draft: Draft, entry: Speculation, outcome: CallEnded, wanted: bool) -> bool:
    """Put a result into the cache where it fits; whether anything is left to do with it."""
    result_hash, result_bytes = measure(draft, outcome)
    if make_room(draft, result_bytes):
        _make_ready(draft, entry, outcome, result_hash, result_bytes)
    elif not wanted:
        end_speculation(draft, entry, "discarded", "evicted", tool_ms=outcome.duration_ms)
        return False
    return True


def _make_ready(
    draft: Draft, entry: Speculation, outcome: CallEnded, result_hash: str, result_bytes: int
) -> None:
    draft.emit(
        SpeculationReady(
            call_id=outcome.call_id,
            result_ref=coordinate_of(draft.source.address),
            result_hash=result_hash,
            result_bytes=result_bytes,
            tool_ms=outcome.duration_ms,
            as_of=to_rfc3339(entry.call.started_ms),
            expires_at=to_rfc3339(entry.call.started_ms + entry.call.ttl_ms),
        ),
        draft.run(entry.run_id),
    )


def _saved_ms(draft: Draft, task: TaskState, outcome: CallEnded) -> float:
    """What joining spared the run: the tool's time less the time it still had to wait."""
    assert task.call is not None
    waited_ms = draft.now_ms - task.call.started_ms
    return max(0.0, outcome.duration_ms - waited_ms)


def _fail_speculative(
    draft: Draft, entry: Speculation, outcome: CallEnded, waiting: list[tuple[str, str, TaskState]]
) -> None:
    error = failure_of(outcome)
    end_speculation(draft, entry, "failed", error.code.lower(), tool_ms=outcome.duration_ms)
    for run_id, task_id, _ in waiting:
        # What joined calls once for real (DESIGN §4, Cache).
        fail_task(
            draft,
            draft.run(run_id),
            task_id,
            error,
            retry_at_ms=draft.now_ms,
            started_at=outcome.started_at,
            duration_ms=outcome.duration_ms,
        )
        call_again(draft, run_id, task_id)


def call_again(draft: Draft, run_id: str, task_id: str) -> None:
    """The next attempt of a task, now and for real."""
    run = draft.run(run_id)
    prepared = prepare(draft, run, run.node(task_id))
    if isinstance(prepared, Unprepared):
        fail_task(draft, run, task_id, prepared.error)
        return
    start_task(draft, run_id, prepared, attempt=run.task(task_id).attempt + 1, fresh=True)


def end_task(draft: Draft, run_id: str, task_id: str, task: TaskState, outcome: CallEnded) -> None:
    """A task's own call was answered."""
    assert task.call is not None
    if outcome.status == "ok" and outcome.result is not None:
        _complete(draft, run_id, task_id, outcome, as_of_ms=task.call.started_ms)
        discard_for_task(draft, run_id, task_id, "superseded")
        return
    error = failure_of(outcome)
    if task.call.effect == "write" and uncertain(outcome):
        unknown_task(
            draft,
            draft.run(run_id),
            task_id,
            error,
            started_at=outcome.started_at,
            duration_ms=outcome.duration_ms,
        )
        return
    fail_task(
        draft,
        draft.run(run_id),
        task_id,
        error,
        retry_at_ms=retry_at_ms(draft, draft.run(run_id), task, error),
        started_at=outcome.started_at,
        duration_ms=outcome.duration_ms,
    )


def retry_at_ms(draft: Draft, run: Run, task: TaskState, error: CallError) -> int | None:
    """When the next attempt begins; None where there is none.

    Only errors marked retryable, and only tools that may be repeated: their starting event carries
    the rule (DESIGN §5). A run that is being stopped begins nothing.
    """
    if run.waits.abort is not None or task.retry is None or not error.retryable:
        return None
    attempt = task.attempt - task.earlier
    if attempt >= task.retry.attempts:
        return None
    return draft.now_ms + (task.retry.backoff_ms << (attempt - 1))


def _complete(
    draft: Draft,
    run_id: str,
    task_id: str,
    outcome: CallEnded,
    *,
    as_of_ms: int,
    saved_ms: float = 0.0,
    served_by: ServedBy | None = None,
) -> None:
    run: Run = draft.run(run_id)
    call: Call | None = run.task(task_id).call
    assert call is not None
    result_hash, result_bytes = measure(draft, outcome)
    served = run.task(task_id).served_by != "call"
    complete_task(
        draft,
        run,
        task_id,
        draft.source.address,
        result_hash=result_hash,
        result_bytes=result_bytes,
        tool_ms=outcome.duration_ms,
        duration_ms=float(draft.now_ms - call.started_ms) if served else outcome.duration_ms,
        saved_ms=saved_ms,
        as_of_ms=as_of_ms,
        started_at=outcome.started_at,
        served_by=served_by,
    )
