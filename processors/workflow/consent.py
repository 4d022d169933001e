"""A person's word for one call: asked for, and whether it was given (DESIGN §4, Approvals).

It is for exactly these arguments and this definition of the tool; where either has changed since, it is
asked for again. It may have been given before the run began (`beforehand`).
"""

from __future__ import annotations

from typing import Literal

from pml.processors.speculation.guard import listed_tool
from pml.processors.workflow.draft import Draft
from pml.processors.workflow.evolve_decisions import waits_for_approval
from pml.processors.workflow.obedience import Decision
from pml.processors.workflow.preparation import Prepared
from pml.processors.workflow.state import Approval, Run
from pml.schemas.events import ApprovalExpired, ApprovalRequested
from pml.schemas.identifiers import approval_id
from pml.schemas.sanitiser import sanitise_text
from pml.schemas.times import to_rfc3339

NOBODY = Decision("pml", "", "")
"""What the clock and the end of a run decide."""
ANY_ARGUMENTS = ""
"""In the place of the hash of arguments that a person has approved whatever they turn out to be."""
_DESCRIPTION_BYTES_MAX = 2_048


def given(run: Run, prepared: Prepared) -> bool:
    """Whether a call may begin: it needs nobody's word, or has it."""
    return prepared.consent is None or word_for(run, prepared) is not None


def word_for(run: Run, prepared: Prepared) -> Approval | None:
    """What a person said of exactly this call, if they did."""
    node, consents = prepared.node, run.waits.consents
    said = run.task(node.id).approval, consents.get(node.id), consents.get(node.tool)
    return next((approval for approval in said if approval and _covers(approval, prepared)), None)


def _covers(approval: Approval, prepared: Prepared) -> bool:
    return (
        approval.granted
        and approval.arguments_hash in {ANY_ARGUMENTS, prepared.arguments_hash}
        and approval.definition == prepared.granted.definition
    )


def ask(draft: Draft, run_id: str, prepared: Prepared) -> None:
    """Ask a person; the task waits until somebody answers or the time is over."""
    node, consent = prepared.node, prepared.consent
    run = draft.run(run_id)
    assert consent is not None
    requested = ApprovalRequested(
        approval_id=approval_id(draft.next_event_id),
        task_id=node.id,
        layer=node.layer,
        tool=node.tool,
        description=description_of(draft, node.tool, _DESCRIPTION_BYTES_MAX),
        arguments=prepared.sanitised,
        arguments_hash=prepared.arguments_hash,
        effect=prepared.granted.effect,
        touches=prepared.touches,
        definition=prepared.granted.definition,
        code=consent.code,
        message=sanitise_text(consent.message),
        expires_at=to_rfc3339(draft.now_ms + patience_ms(draft, run)),
    )
    draft.emit(requested, run)


def description_of(draft: Draft, tool: str, bytes_max: int) -> str:
    """What its server says of a tool, if it is listed."""
    listed = listed_tool(tool, draft.catalog.server_of(tool))
    return sanitise_text(listed.description, bytes_max) if listed else ""


def withdraw(draft: Draft, run_id: str, task_id: str, because: Literal["timeout", "run_ended"]) -> None:
    """Nobody will answer any more."""
    run = draft.run(run_id)
    approval = run.task(task_id).approval
    assert approval is not None
    expired = ApprovalExpired(
        **NOBODY.fields(),
        approval_id=approval.approval_id,
        task_id=task_id,
        tool=run.node(task_id).tool,
        because=because,
        run_status=status_without(run, approval.approval_id),
    )
    draft.emit(expired, run)


def status_without(run: Run, approval_id: str) -> Literal["running", "waiting"]:
    """The status of a run once one of its questions is answered."""
    waits = run.waits.pause is not None or waits_for_approval(run, but=approval_id)
    return "waiting" if waits else "running"


def patience_ms(draft: Draft, run: Run) -> int:
    """How long a person is waited for."""
    assert run.graph is not None
    given_s = run.graph.options.approval_timeout_s
    return draft.catalog.policy.approval_timeout_ms if given_s is None else round(given_s * 1_000)
