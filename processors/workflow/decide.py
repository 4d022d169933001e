"""`decide`: the events that follow from one input (DESIGN §2, rule 2). Same state and input, same events."""

from __future__ import annotations

from dataclasses import replace

from pml.processors.speculation import planner
from pml.processors.speculation.accounts import drift, open_entries
from pml.processors.speculation.predictions import deepen
from pml.processors.workflow.catalog import Catalog
from pml.processors.workflow.commanding import obey
from pml.processors.workflow.draft import Draft
from pml.processors.workflow.inputs import Input, Payloads, Step, Unreadable
from pml.processors.workflow.outcomes import end_call
from pml.processors.workflow.reached import reach_deadline
from pml.processors.workflow.resolving import answer_inquiry, answer_late
from pml.processors.workflow.settling import end_each
from pml.processors.workflow.starting import reject, start_run
from pml.processors.workflow.state import Session
from pml.processors.workflow.verification import verify_hits
from pml.schemas.calls import CallEnded
from pml.schemas.commands import Command, DeadlineReach, RunStart
from pml.schemas.errors import Refused, UnknownMessage
from pml.schemas.events import SpeculationUnbalanced


def decide(
    session: Session | None, source: Input, payloads: Payloads, catalog: Catalog, next_offset: int
) -> Step:
    """The answer to one input.

    Args:
        session: its state, None where nothing is known of it.
        source: the record; it is decided once, which the caller sees to.
        payloads: the full values that `needs` asked for; absent ones are gone.
        catalog: one snapshot.
        next_offset: the log offset that the first event will have.

    Returns:
        Events, the state they fold to, and the calls they begin or end. No events: nothing changed.
    """
    known = living(session, source, catalog)
    draft = Draft(known, source, payloads, _allowing(known, catalog), next_offset)
    message = source.message
    if isinstance(message, Unreadable):
        _reject_unreadable(draft, message)
    elif isinstance(message, CallEnded):
        if known is not None:
            _decide_outcome(draft, message)
    elif (message.tenant, message.session_id) != (source.tenant, source.session_id):
        reject(draft, message.type, _KeyMismatch(_MISMATCH), message.run_id)
    else:
        _obey(draft, message, known)
    _audit(draft, known)
    step = draft.step()
    return step if step.events else Step((), session, (), ())


def _audit(draft: Draft, before: Session | None) -> None:
    """Say so, once, where the accounts of speculation do not add up any more (DESIGN §4)."""
    if not draft.wrote or drift(draft.session) in {0, drift(before) if before else 0}:
        return
    accounts = draft.session.accounts
    unbalanced = SpeculationUnbalanced(
        started=accounts.started,
        open=open_entries(draft.session),
        served=accounts.served,
        discarded=accounts.discarded,
        failed=accounts.failed,
    )
    draft.emit(unbalanced)


_MISMATCH = "the record's key must be tenant/session_id of the command in it"


class _KeyMismatch(Refused):
    code = "KEY_MISMATCH"


def living(session: Session | None, source: Input, catalog: Catalog) -> Session | None:
    """The session, unless it has ended: then a returning one begins a new life (rule 4)."""
    if session is None or session.live:
        return session
    ended = source.time_ms > session.last_event_ms + catalog.policy.session_ttl_ms
    return None if ended else session


def _allowing(known: Session | None, catalog: Catalog) -> Catalog:
    """The snapshot with which a session is decided: nothing runs early in one that is full.

    Whoever went on in it goes on in another session, whose writes this one does not see: what waits here may
    be old by then, and so may what a run that still goes on would find early.
    """
    policy = catalog.policy
    if known is None or len(known.runs) < policy.runs_remembered_max:
        return catalog
    return replace(catalog, policy=replace(policy, speculation_mode="off"))


def _obey(draft: Draft, command: Command, known: Session | None) -> None:
    if isinstance(command.data, RunStart):
        if known is not None:
            _sweep(draft)
        start_run(draft, command, command.data, known)
        if draft.completed:
            _speculate_everywhere(draft)
    elif isinstance(command.data, DeadlineReach):
        if known is not None:
            _sweep(draft)
            reach_deadline(draft, command, command.data)
            _speculate_everywhere(draft)
    else:
        if known is not None:
            _sweep(draft)
        if obey(draft, command, known):
            _speculate_everywhere(draft)


def _decide_outcome(draft: Draft, outcome: CallEnded) -> None:
    _sweep(draft)
    if not (answer_late(draft, outcome) or answer_inquiry(draft, outcome)):
        end_call(draft, outcome)
    _speculate_everywhere(draft)


def _speculate_everywhere(draft: Draft) -> None:
    for run in draft.runs:
        if draft.run(run.run_id).live:
            planner.speculate(draft, run.run_id)
    deepen(draft)
    verify_hits(draft)


def _sweep(draft: Draft) -> None:
    """End what waits too long, and everything that waits where speculation was switched off."""
    waiting = [
        entry for entry in draft.session.speculations.values() if entry.status == "ready" and not entry.served
    ]
    off = [entry for entry in waiting if draft.catalog.mode_of(draft.session.tenant, entry.tool) != "on"]
    end_each(draft, off, "discarded", "switched_off")
    end_each(draft, (entry for entry in waiting if entry.expires_ms <= draft.now_ms), "discarded", "expired")


def _reject_unreadable(draft: Draft, message: Unreadable) -> None:
    error = UnknownMessage(message.message)
    error.code = message.code
    reject(draft, message.command_type, error, None)
