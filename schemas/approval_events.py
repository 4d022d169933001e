"""Events of calls that a person has to allow."""

from __future__ import annotations

from typing import Literal

from pml.schemas.base import Json, Record
from pml.schemas.calls import Effect
from pml.schemas.event_data import Decided, EventData


class ApprovalCall(Record):
    """One of the calls that a person is asked about before any of them begins.

    Where its arguments are not all known yet, `arguments_hash` is absent, `arguments` has those that are, and
    `computed` says what the others will be taken from. Of a program in the sandbox only its tools are known:
    then `task_id` is empty. A `conditional` call may never come.
    """

    task_id: str = ""
    layer: int = 0
    tool: str
    description: str = ""
    arguments: Json = None
    computed: dict[str, str] | None = None
    arguments_hash: str | None = None
    effect: Effect
    touches: tuple[str, ...] = ()
    definition: str = ""
    code: str
    message: str
    conditional: bool | None = None


class ApprovalRequested(EventData):
    """A call waits for a person until `expires_at`: what it would do, and with which arguments.

    An approval is for exactly these arguments and this definition of the tool. `code` says why it is
    needed: APPROVAL_REQUIRED (its entry wants it for each call) or TOOL_NOT_APPROVED (it has no entry).

    With `calls` it is about all of these, and nothing of the run begins before it is answered; the fields
    beside them are those of the only call where there is one. `omitted` calls had no room: they are asked
    about in their turn.
    """

    TYPE = "approval.requested"

    approval_id: str
    task_id: str
    layer: int
    tool: str
    description: str = ""
    arguments: Json = None
    arguments_hash: str
    effect: Effect
    touches: tuple[str, ...] = ()
    definition: str = ""
    code: str
    message: str
    expires_at: str
    calls: tuple[ApprovalCall, ...] | None = None
    omitted: int | None = None


class ApprovalSettled(Decided):
    """What the ends of a request have in common; `run_status` is the run's status from here.

    `via` is the door at which the person stood, where it is known.
    """

    approval_id: str
    task_id: str
    tool: str
    run_status: Literal["running", "waiting"] = "running"
    via: str | None = None


class ApprovalGranted(ApprovalSettled):
    """A person approved the call; it begins unless it has changed meanwhile.

    With `computed` it is for the calls that were shown, also where their arguments were not known yet.
    """

    TYPE = "approval.granted"

    computed: bool | None = None


class ApprovalRejected(ApprovalSettled):
    """A person rejected the call; its task fails with APPROVAL_REJECTED."""

    TYPE = "approval.rejected"


class ApprovalExpired(ApprovalSettled):
    """Nobody decided in time (`timeout`), or the run ended, or got other tasks, before."""

    TYPE = "approval.expired"

    because: Literal["timeout", "run_ended", "replanned"] = "timeout"
