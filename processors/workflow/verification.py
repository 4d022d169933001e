"""A share of hits is called again after it was served: does the tool still say the same (DESIGN §4, Cache)?

Which ones follows from the call ids, which are hashes: the same log verifies the same hits. Nobody waits for
such a call. A write of what it touches makes its answer worthless, so it is given up then; so are those of a
run that is aborted. It outlives its run otherwise, or the last layer would never be verified.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pml.processors.speculation.touches import any_overlap
from pml.processors.workflow.calls import Wanted, call_run
from pml.processors.workflow.draft import Draft
from pml.processors.workflow.evolve import unsettled_touches
from pml.processors.workflow.folding import coordinate_of
from pml.processors.workflow.inputs import Address, payload_value
from pml.processors.workflow.learning import threshold_context
from pml.processors.workflow.preparation import Prepared, Unprepared, started_fields
from pml.processors.workflow.state import Call, Run, Speculation, Verification
from pml.schemas.calls import CallEnded
from pml.schemas.canonical import value_hash
from pml.schemas.events import (
    SpeculationDiverged,
    SpeculationVerified,
    SpeculationVerifying,
    VerifiedOutcome,
)

_HASH_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Hit:
    """A speculation that was served just now and is to be verified."""

    run_id: str
    prepared: Prepared
    entry: Speculation
    result_hash: str
    reads: Mapping[str, Address]


def chosen(call: Call, share: float) -> bool:
    """Whether the hit of a speculated call is one of the share that is verified."""
    digits = call.call_id.rpartition("_")[2][:_HASH_DIGITS]
    return int(digits, 16) < share * float(16**_HASH_DIGITS)


def note_hit(
    draft: Draft, run: Run, prepared: Prepared | Unprepared, entry: Speculation, result_hash: str
) -> None:
    """Remember a hit that is to be verified once everything else that follows from this input is decided.

    Not where the permissions have changed meanwhile: what writes now, or asks a person, is not called again.
    """
    if isinstance(prepared, Unprepared) or not prepared.reads or prepared.consent is not None:
        return
    results = {name: run.task(name).result for name in prepared.node.references}
    reads = {name: address for name, address in results.items() if address is not None}
    draft.hits.append(Hit(run.run_id, prepared, entry, result_hash, reads))


def verify_hits(draft: Draft) -> None:
    """Call the tools of this input's hits again, where no write is under way and they may run early now."""
    for hit in draft.hits:
        tool = hit.prepared.node.tool
        pending = any_overlap(hit.prepared.touches, unsettled_touches(draft.session))
        if not pending and draft.catalog.mode_of(draft.session.tenant, tool) == "on":
            _begin(draft, hit)


def end_verification(draft: Draft, outcome: CallEnded) -> None:
    """A tool that was called again has answered, or will not."""
    call_id, verification = outcome.call_id, draft.session.verifications[outcome.call_id]
    if outcome.status != "ok" or outcome.result is None:
        _verified(draft, call_id, verification, "unanswered")
        return
    found = value_hash(payload_value(outcome.result), draft.catalog.policy.hash_key)
    if found == verification.result_hash:
        _verified(draft, call_id, verification, "same")
    else:
        _diverged(draft, call_id, verification, found)


def give_up_overdue(draft: Draft, call_id: str) -> None:
    """Nobody answered in time."""
    verification = draft.session.verifications[call_id]
    if verification.call.deadline_ms <= draft.now_ms:
        _verified(draft, call_id, verification, "unanswered")


def give_up_overtaken(draft: Draft, touches: tuple[str, ...]) -> None:
    """A write begins: what is called again may see it or not."""
    for call_id, verification in list(draft.session.verifications.items()):
        if any_overlap(verification.call.touches, touches):
            _verified(draft, call_id, verification, "overtaken")
            draft.cancel(draft.run(verification.run_id), call_id, "overtaken")


def give_up_of_run(draft: Draft, run_id: str) -> None:
    """Whatever was begun early for a run is not wanted any more."""
    for call_id, verification in list(draft.session.verifications.items()):
        if verification.run_id == run_id:
            _verified(draft, call_id, verification, "unanswered")
            draft.cancel(draft.run(run_id), call_id, "aborted")


def _begin(draft: Draft, hit: Hit) -> None:
    fields = started_fields(draft, hit.prepared)
    run = draft.run(hit.run_id)
    verifying = SpeculationVerifying(
        **fields,
        started_seq=hit.entry.call.started_seq,
        kind=hit.entry.kind,
        confidence=hit.entry.confidence,
        result_hash=hit.result_hash,
        reads={name: coordinate_of(address) for name, address in hit.reads.items()},
    )
    draft.emit(verifying, run)
    begun = draft.session.verifications[fields["call_id"]]
    item = Wanted(run, begun.task_id, begun.tool, 1, begun.call, True, begun.sources)
    draft.calls.append(call_run(draft.session, item, hit.prepared.arguments))


def _verified(draft: Draft, call_id: str, found: Verification, outcome: VerifiedOutcome) -> None:
    verified = SpeculationVerified(
        call_id=call_id,
        started_seq=found.started_seq,
        task_id=found.task_id,
        tool=found.tool,
        outcome=outcome,
    )
    draft.emit(verified, draft.run(found.run_id))


def _diverged(draft: Draft, call_id: str, found: Verification, result_hash: str) -> None:
    run = draft.run(found.run_id)
    diverged = SpeculationDiverged(
        call_id=call_id,
        started_seq=found.started_seq,
        task_id=found.task_id,
        tool=found.tool,
        kind=found.kind,
        confidence=found.confidence,
        served_hash=found.result_hash,
        result_hash=result_hash,
        context=threshold_context(run) if found.confidence < 1 else None,
    )
    draft.emit(diverged, run)
