"""`evolve`: the state after one more event. It needs the event alone (DESIGN §2, rule 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pml.processors.speculation.touches import any_overlap
from pml.processors.workflow.copying import maker, replace, replacer
from pml.processors.workflow.elements import foreseen_key, with_foreseen, with_past
from pml.processors.workflow.evolve_decisions import DECISIONS, ended_run, remembered
from pml.processors.workflow.evolve_internal import INTERNALS, forgotten
from pml.processors.workflow.folding import address_of
from pml.processors.workflow.folding import run_of as _run
from pml.processors.workflow.folding import with_run as _with_run
from pml.processors.workflow.folding import with_task as _with_task
from pml.processors.workflow.folding import without as _without
from pml.processors.workflow.graph import Deferred
from pml.processors.workflow.learning import domain_of, learned_name
from pml.processors.workflow.state import (
    Accounts,
    Approval,
    Call,
    Counts,
    Foreseen,
    Inquiry,
    Plan,
    Run,
    RunStatus,
    Session,
    Source,
    Speculation,
    TaskState,
    Verification,
)
from pml.schemas import events as e
from pml.schemas.errors import LogCorrupted
from pml.schemas.times import from_rfc3339

HOUR_MS = 3_600_000
PACES_MAX = 64
"""Tools whose time a session remembers for shadow mode, the newest."""
CAUGHT_MAX = 500
"""Characters of an error's message that a program in the sandbox can read."""
# What the most frequent events make or change.
_new_task, _new_call, _new_entry = maker(TaskState), maker(Call), maker(Speculation)
_moved_on = replacer(Session, "seq", "last_offset", "last_event_ms", "speculations")
_with_speculations = replacer(Session, "speculations")
_with_accounts = replacer(Session, "accounts", "speculations")
_with_layer = replacer(Run, "layer")
_gone_on = replacer(Run, "tasks", "counts", "path")
_completed = replacer(TaskState, "status", "call", "approval", "result")
_begun_early = replacer(TaskState, "speculable", "speculated")
_ready = replacer(Speculation, "status", "result", "result_hash", "result_bytes", "tool_ms", "expires_ms")
_once_served = replacer(Speculation, "served")
_with_started = replacer(Accounts, "started")
_with_served = replacer(Accounts, "served")
_TRIED_ONCE = frozenset({"expired", "evicted"})
_ENDS: dict[str, RunStatus] = {
    e.RunCompleted.TYPE: "completed",
    e.RunFailed.TYPE: "failed",
    e.RunAborted.TYPE: "aborted",
}


def evolve(session: Session | None, event: e.Event) -> Session:
    """Fold one counted event.

    Raises:
        LogCorrupted: the event does not follow the one before it.
    """
    data = event.data
    current = _following(session, event, from_rfc3339(event.occurred_at))
    handler = _HANDLERS.get(event.type)
    folded = handler(current, event, data) if handler else current
    return remembered(folded, event, data) if isinstance(data, e.Decided) else folded


def _following(session: Session | None, event: e.Event, time_ms: int) -> Session:
    if session is None or session.epoch != event.epoch:
        if event.seq != 0 or event.epoch != event.offset:
            raise LogCorrupted(
                f"{event.id} at log offset {event.offset} does not begin a session; the log has a gap"
            )
        return Session(event.tenant, event.session_id, event.epoch, 0, event.offset, time_ms)
    seq = event.seq
    if seq != session.seq + 1:
        raise LogCorrupted(
            f"{event.id} at log offset {event.offset} follows seq {session.seq}; the log has a gap"
        )
    kept = _unexpired(session.speculations, time_ms)
    return _moved_on(session, seq, event.offset, time_ms, kept)


def _unexpired(speculations: Mapping[str, Speculation], time_ms: int) -> Mapping[str, Speculation]:
    """Those that may still be used; most of the time that is all of them."""
    for item in speculations.values():
        if item.served and item.expires_ms <= time_ms:
            break
    else:
        return speculations
    return {
        call_id: item
        for call_id, item in speculations.items()
        if not (item.served and item.expires_ms <= time_ms)
    }


def _run_started(session: Session, event: e.Event, data: e.RunStarted) -> Session:
    run = Run(
        run_id=event.run_id or "",
        status="running",
        payload=address_of(data.payload_ref),
        payload_hash=data.payload_hash,
        started_ms=session.last_event_ms,
        deadline_ms=from_rfc3339(data.deadline_at),
        speculation=data.speculation,
        principal=event.principal,
        command_id=event.command_id or "",
        traceparent=event.traceparent,
        graph=Deferred(data.definition),
        workflow_type=learned_name(data.workflow_type),
        domain=domain_of(data.context),
        capability_id=data.capability_id,
        predicts=bool(data.predicts),
    )
    return _with_run(session, run)


def _run_ended(session: Session, event: e.Event, data: e.RunEnded) -> Session:
    run = _run(session, event)
    known = with_past(session, run) if run.predicts else session
    return ended_run(forgotten(known, run), run, _ENDS[event.type])


def _layer_released(session: Session, event: e.Event, data: e.LayerReleased) -> Session:
    return _with_run(session, _with_layer(_run(session, event), data.layer))


def _branch_taken(session: Session, event: e.Event, data: e.BranchTaken) -> Session:
    run = _run(session, event)
    return _with_run(
        session,
        replace(
            run,
            decisions={**run.decisions, data.decision_id: data.outcome},
            path=(*run.path, data.decision_id),
        ),
    )


def _task_started(session: Session, event: e.Event, data: e.TaskStarted) -> Session:
    run = _run(session, event)
    before = run.task(data.task_id)
    task = _new_task(
        status="running",
        attempt=data.attempt,
        call=_call(event, data, session.last_event_ms),
        retry=data.retry,
        served_by=data.served_by,
        serves=data.serves,
        speculable=data.speculable,
        eligible=bool(data.eligible),
        speculated=before.speculated or data.serves is not None,
        replaces=_replaces(session, event, data),
        earlier=before.earlier,
        approval=_approval(before, data),
        crossed=data.effect == "write" and any_overlap(data.touches, unsettled_touches(session)),
    )
    if data.effect == "read":
        return _with_task(session, run, data.task_id, task)
    crossed = _crossed(session, data.touches)
    started = _with_task(crossed, crossed.runs[run.run_id], data.task_id, task)
    return _without_overlapping(started, data.touches)


def _approval(before: TaskState, data: e.TaskStarted) -> Approval | None:
    """The word that a call began with; one that was given for several calls is for this one from here."""
    if data.approval_id is None:
        return None
    own = before.approval
    if own is not None and own.approval_id == data.approval_id:
        return own
    return Approval(data.approval_id, data.arguments_hash, data.definition, 0, granted=True)


def _task_completed(session: Session, event: e.Event, data: e.TaskCompleted) -> Session:
    run = _run(session, event)
    before = run.task(data.task_id)
    task = _completed(
        before, status="completed", call=None, approval=None, result=address_of(data.result_ref)
    )
    tasks, path = {**run.tasks, data.task_id: task}, (*run.path, data.task_id)
    done = _with_run(session, _gone_on(run, tasks, _counts(run.counts, data), path))
    call = before.call
    return _with_fresh(done, run.run_id, data, call) if data.cached and call else done


def _counts(counts: Counts, data: e.TaskCompleted) -> Counts:
    if data.served_by in {"speculation", "joined"}:
        return replace(counts, hits=counts.hits + 1, saved_ms=counts.saved_ms + data.saved_ms)
    return _with_miss(counts, data)


def _task_failed(session: Session, event: e.Event, data: e.TaskFailed) -> Session:
    run = _run(session, event)
    before = run.task(data.task_id)
    if not data.final:
        retry_ms = from_rfc3339(data.retry_at) if data.retry_at else session.last_event_ms
        # What was speculated and failed is no attempt of the task's own: it has all that its rule gives it.
        earlier = before.earlier if before.served_by == "call" else before.attempt
        waiting = replace(before, status="pending", retry_ms=retry_ms, earlier=earlier)
        return _with_task(session, run, data.task_id, waiting)
    first = run.first_failure or ("" if run.tolerates(data.task_id) else data.task_id)
    error = (data.error.code, data.error.type, data.error.message[:CAUGHT_MAX]) if run.sandbox else None
    failed = replace(before, status="failed", attempt=data.attempt, call=None, approval=None, error=error)
    counts = _with_miss(run.counts, data)
    counted = replace(run, counts=counts, first_failure=first, path=(*run.path, data.task_id))
    return _with_task(session, counted, data.task_id, failed)


def _task_unknown(session: Session, event: e.Event, data: e.TaskUnknown) -> Session:
    run = _run(session, event)
    before = run.task(data.task_id)
    touches = before.call.touches if before.call else ()
    unknown = replace(before, status="unknown")
    call_id = data.call_id or data.task_id
    doubtful = {**session.doubtful, call_id: touches}
    inquiries = session.inquiries
    if data.verify_at is not None:
        asked = Inquiry(run.run_id, data.task_id, from_rfc3339(data.verify_at))
        inquiries = {**inquiries, call_id: asked}
    return _with_task(
        replace(session, doubtful=doubtful, inquiries=inquiries),
        replace(run, path=(*run.path, data.task_id)),
        data.task_id,
        unknown,
    )


def _task_verifying(session: Session, event: e.Event, data: e.TaskVerifying) -> Session:
    asked = replace(
        session.inquiries[data.unknown_call_id],
        tool=data.tool,
        template=data.template,
        done=data.done,
        call=_call(event, data, session.last_event_ms),
    )
    return replace(session, inquiries={**session.inquiries, data.unknown_call_id: asked})


def _task_unverified(session: Session, _: e.Event, data: e.TaskUnverified) -> Session:
    return replace(session, inquiries=_without(session.inquiries, data.unknown_call_id))


def _task_skipped(session: Session, event: e.Event, data: e.TaskSkipped) -> Session:
    run = _run(session, event)
    before = run.task(data.task_id)
    skipped = replace(before, status="skipped", call=None, approval=None, skip_reason=data.reason)
    return _with_task(session, run, data.task_id, skipped)


def _speculation_started(session: Session, event: e.Event, data: e.SpeculationStarted) -> Session:
    run = _run(session, event)
    entry = _new_entry(
        run_id=run.run_id,
        task_id=data.task_id,
        tool=data.tool,
        kind=data.kind,
        confidence=data.confidence,
        call=_call(event, data, session.last_event_ms),
        sources=_sources(session, data),
        plan=address_of(data.plan) if data.plan else None,
    )
    accounts = _with_started(session.accounts, session.accounts.started + 1)
    started = _with_accounts(session, accounts, {**session.speculations, data.call_id: entry})
    if data.plan is not None:
        return started
    task = _begun_early(run.task(data.task_id), speculable=True, speculated=True)
    return _with_task(started, run, data.task_id, task)


def _speculation_unresolvable(session: Session, event: e.Event, data: e.SpeculationUnresolvable) -> Session:
    """What it needs will not come to be known before its turn: it is looked at once."""
    run = _run(session, event)
    return _with_task(session, run, data.task_id, replace(run.task(data.task_id), barred=True))


def _speculation_held(session: Session, event: e.Event, data: e.SpeculationHeld) -> Session:
    run = _run(session, event)
    if data.shadow:
        modelled = {task_id: replace(run.task(task_id), held=True) for task_id in data.task_ids}
        return _with_run(session, replace(run, tasks={**run.tasks, **modelled}))
    held = {task_id: replace(run.task(task_id), speculable=True) for task_id in data.task_ids}
    return _with_run(session, replace(run, tasks={**run.tasks, **held}))


def _speculation_forgotten(session: Session, _: e.Event, data: e.SpeculationForgotten) -> Session:
    kept = {name: entry for name, entry in session.speculations.items() if name not in data.call_ids}
    return replace(session, speculations=kept)


def _speculation_verifying(session: Session, event: e.Event, data: e.SpeculationVerifying) -> Session:
    begun = Verification(
        run_id=event.run_id or "",
        task_id=data.task_id,
        tool=data.tool,
        kind=data.kind,
        confidence=data.confidence,
        started_seq=data.started_seq,
        result_hash=data.result_hash,
        call=_call(event, data, session.last_event_ms),
        sources=tuple(Source(name, "", address_of(place)) for name, place in data.reads.items()),
    )
    return replace(session, verifications={**session.verifications, data.call_id: begun})


def _speculation_verified(
    session: Session, _: e.Event, data: e.SpeculationVerified | e.SpeculationDiverged
) -> Session:
    return replace(session, verifications=_without(session.verifications, data.call_id))


def _speculation_planned(session: Session, event: e.Event, data: e.SpeculationPlanned) -> Session:
    run = _run(session, event)
    plan = Plan(
        seq=event.seq,
        planned_ms=session.last_event_ms,
        shadow=data.shadow,
        kind=data.kind,
        confidence=data.confidence,
        threshold=data.threshold,
        arguments_hash=data.arguments_hash,
        touches=data.touches,
        expires_ms=from_rfc3339(data.expires_at),
    )
    if data.kind == "prediction":
        foreseen = Foreseen(run.run_id, data.task_id, data.tool, plan)
        planned = with_foreseen(session, foreseen)
    else:
        planned = _with_run(session, replace(run, plans={**run.plans, data.task_id: plan}))
    if not data.shadow:
        return planned
    return replace(planned, accounts=replace(session.accounts, planned=session.accounts.planned + 1))


def _speculation_scored(session: Session, event: e.Event, data: e.SpeculationScored) -> Session:
    run = _run(session, event)
    if data.kind == "prediction":
        foreseen = _without(session.foreseen, foreseen_key(run.run_id, data.task_id))
        return _modelled(replace(session, foreseen=foreseen), data)
    scored = _with_run(session, replace(run, plans=_without(run.plans, data.task_id)))
    return _modelled(scored, data)


def _modelled(session: Session, data: e.SpeculationScored) -> Session:
    """What shadow mode knows now of its budget: how long the tool takes, and what would have been wasted."""
    paces, accounts = session.paces, session.accounts
    if data.tool_ms is not None:
        kept = list(_without(paces, data.tool).items())[-(PACES_MAX - 1) :]
        paces = {**dict(kept), data.tool: data.tool_ms}
    if data.wasted_ms is not None:
        hour = session.last_event_ms // HOUR_MS
        wasted_ms = (accounts.shadow_wasted_ms if hour == accounts.shadow_hour else 0.0) + data.wasted_ms
        accounts = replace(accounts, shadow_hour=hour, shadow_wasted_ms=wasted_ms)
    return replace(session, paces=paces, accounts=accounts)


def _speculation_ready(session: Session, _: e.Event, data: e.SpeculationReady) -> Session:
    entry = session.speculations.get(data.call_id)
    if entry is None:
        return session
    ready = _ready(
        entry,
        status="ready",
        result=address_of(data.result_ref),
        result_hash=data.result_hash,
        result_bytes=data.result_bytes,
        tool_ms=data.tool_ms,
        expires_ms=from_rfc3339(data.expires_at),
    )
    return _with_speculations(session, {**session.speculations, data.call_id: ready})


def _speculation_ended(session: Session, event: e.Event, data: e.SpeculationEnded) -> Session:
    entry = session.speculations.get(data.call_id)
    accounts = _accounted(session.accounts, data, session.last_event_ms)
    if data.fate != "served":
        ended = _with_accounts(session, accounts, _without(session.speculations, data.call_id))
        # The run after which a call was predicted has told its counts already, and has no such task.
        return ended if data.kind == "prediction" else _count_waste(_bar(ended, event, data), event)
    if entry is None:
        return replace(session, accounts=accounts)
    # A stale result, or one that has no room, was good for the task that had joined it, and for nobody else.
    served = _without(session.speculations, data.call_id)
    if entry.status == "ready":
        served = {**session.speculations, data.call_id: _once_served(entry, served=True)}
    return _with_accounts(session, accounts, served)


def _with_miss(counts: Counts, data: e.TaskEnded) -> Counts:
    """A real call of a task that could have been served early is counted at its last attempt."""
    if not (data.speculable and data.served_by == "call" and data.call_id):
        return counts
    return replace(counts, misses=counts.misses + 1)


def _accounted(accounts: Accounts, data: e.SpeculationEnded, time_ms: int) -> Accounts:
    if data.fate == "served":
        return _with_served(accounts, accounts.served + 1)
    hour = time_ms // HOUR_MS
    wasted = (accounts.wasted_ms if hour == accounts.waste_hour else 0.0) + data.tool_ms
    counted = replace(accounts, waste_hour=hour, wasted_ms=wasted)
    if data.fate == "failed":
        return replace(counted, failed=counted.failed + 1)
    return replace(counted, discarded=counted.discarded + 1)


def _bar(session: Session, event: e.Event, data: e.SpeculationEnded) -> Session:
    """What failed, expired or had no room would do so again: each is tried once.

    What began before a replan went on only for another run that had joined it: its task was dropped.
    """
    run = _run(session, event)
    if not run.live or not (data.fate == "failed" or data.reason in _TRIED_ONCE):
        return session
    if data.started_seq < run.waits.replanned:
        return session
    return _with_task(session, run, data.task_id, replace(run.task(data.task_id), barred=True))


def _count_waste(session: Session, event: e.Event) -> Session:
    run = _run(session, event)
    return _with_run(session, replace(run, counts=replace(run.counts, wasted=run.counts.wasted + 1)))


def _replaces(session: Session, event: e.Event, data: e.TaskStarted) -> bool:
    """Whether a task was speculated with other arguments than it has now, and its own result may be kept."""
    if data.served_by != "call" or data.effect == "write" or not data.cacheable:
        return False
    other = any(
        entry.began_for(event.run_id or "") and not entry.served
        for entry in session.speculations.values()
        if entry.task_id == data.task_id and entry.call.arguments_hash != data.arguments_hash
    )
    return other and not any_overlap(data.touches, unsettled_touches(session))


def unsettled_touches(session: Session) -> list[str]:
    """What unsafe calls that run, or of which nobody knows, may still change."""
    found = [touch for touches in session.doubtful.values() for touch in touches]
    for _, _, call in _running_writes(session):
        found.extend(call.touches)
    return found


def _running_writes(session: Session) -> Iterator[tuple[str, str, Call]]:
    """Run id, task id and call of each unsafe call that runs."""
    for run in session.runs.values():
        for task_id, task in run.tasks.items():
            if task.status == "running" and task.call and task.call.effect == "write":
                yield run.run_id, task_id, task.call


def _crossed(session: Session, touches: tuple[str, ...]) -> Session:
    """A write begins: of others that run and change the same, nobody could tell the effects apart."""
    for run_id, task_id, call in _running_writes(session):
        if any_overlap(call.touches, touches):
            run = session.runs[run_id]
            session = _with_task(session, run, task_id, replace(run.task(task_id), crossed=True))
    return session


def _with_fresh(session: Session, run_id: str, data: e.TaskCompleted, call: Call) -> Session:
    """The result of a real call in the cache: as one that was used, so every use of it is a repeat."""
    entry = _new_entry(
        run_id=run_id,
        task_id=data.task_id,
        tool=data.tool,
        kind="layer",
        confidence=1.0,
        call=call,
        status="ready",
        served=True,
        result=address_of(data.result_ref),
        result_hash=data.result_hash,
        result_bytes=data.result_bytes,
        tool_ms=data.tool_ms,
        expires_ms=call.started_ms + call.ttl_ms,
    )
    return _with_speculations(session, {**session.speculations, call.call_id: entry})


def _sources(session: Session, data: e.SpeculationStarted) -> tuple[Source, ...]:
    """The results that a call begins with; a prediction may know them by other names than their calls do."""
    names = data.source_tasks or [session.speculations[call_id].task_id for call_id in data.sources or ()]
    pairs = zip(names, data.sources or (), strict=True)
    return tuple(_source(session, name, call_id) for name, call_id in pairs)


def _source(session: Session, name: str, call_id: str) -> Source:
    result = session.speculations[call_id].result
    assert result is not None
    return Source(name, call_id, result)


def _without_overlapping(session: Session, touches: tuple[str, ...]) -> Session:
    """A write begins: cached reads of what it touches are gone; joined ones serve only who joined."""
    joined = joined_calls(session)
    kept: dict[str, Speculation] = {}
    for call_id, entry in session.speculations.items():
        if not any_overlap(entry.call.touches, touches):
            kept[call_id] = entry
        elif call_id in joined:
            kept[call_id] = replace(entry, stale=True)
    return _keep_out(replace(session, speculations=kept), touches)


def _keep_out(session: Session, touches: tuple[str, ...]) -> Session:
    """A read that runs while a write of what it touches begins is not to be kept."""
    for run in session.runs.values():
        for task_id, task in run.tasks.items():
            if task.replaces and task.call and any_overlap(task.call.touches, touches):
                session = _with_task(session, run, task_id, replace(task, replaces=False))
                run = session.runs[run.run_id]
    return session


def joined_calls(session: Session) -> frozenset[str]:
    """The calls of running tasks: a speculation among them has been joined."""
    return frozenset(
        task.call.call_id
        for run in session.runs.values()
        if run.live
        for task in run.tasks.values()
        if task.status == "running" and task.call
    )


def _call(event: e.Event, data: e.Started, time_ms: int) -> Call:
    return _new_call(
        call_id=data.call_id,
        started_seq=event.seq,
        started_ms=time_ms,
        arguments_hash=data.arguments_hash,
        effect=data.effect,
        touches=data.touches,
        cacheable=data.cacheable,
        ttl_ms=round(data.ttl_s * 1_000),
        timeout_ms=data.timeout_ms,
        deadline_ms=from_rfc3339(data.deadline_at),
        definition=data.definition,
        isolation=data.isolation,
        mapped=tuple((data.mapped or {}).items()),
    )


_HANDLERS: dict[str, Callable[[Session, e.Event, Any], Session]] = {
    e.RunStarted.TYPE: _run_started,
    e.RunCompleted.TYPE: _run_ended,
    e.RunFailed.TYPE: _run_ended,
    e.RunAborted.TYPE: _run_ended,
    e.LayerReleased.TYPE: _layer_released,
    e.BranchTaken.TYPE: _branch_taken,
    e.TaskStarted.TYPE: _task_started,
    e.TaskCompleted.TYPE: _task_completed,
    e.TaskFailed.TYPE: _task_failed,
    e.TaskUnknown.TYPE: _task_unknown,
    e.TaskVerifying.TYPE: _task_verifying,
    e.TaskUnverified.TYPE: _task_unverified,
    e.TaskSkipped.TYPE: _task_skipped,
    e.SpeculationStarted.TYPE: _speculation_started,
    e.SpeculationHeld.TYPE: _speculation_held,
    e.SpeculationUnresolvable.TYPE: _speculation_unresolvable,
    e.SpeculationReady.TYPE: _speculation_ready,
    e.SpeculationEnded.TYPE: _speculation_ended,
    **DECISIONS,
    e.SpeculationForgotten.TYPE: _speculation_forgotten,
    e.SpeculationVerifying.TYPE: _speculation_verifying,
    e.SpeculationVerified.TYPE: _speculation_verified,
    e.SpeculationDiverged.TYPE: _speculation_verified,
    e.SpeculationPlanned.TYPE: _speculation_planned,
    e.SpeculationScored.TYPE: _speculation_scored,
    **INTERNALS,
}
