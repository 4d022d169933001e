"""Work for the bridge and what came of it: `pml.tool-calls`, `pml.tool-outcomes`, `pml.call-claims`."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pml.schemas.base import Json, Record

Effect = Literal["read", "write"]
CallStatus = Literal["ok", "error", "refused", "cancelled", "not_started"]
LATE_ANSWER_S = 600.0
"""An unsafe call that overran its time-out is not interrupted; its answer is still taken for this long."""


class CallRecord(Record):
    """The fields that every record about a call carries."""

    TYPE: ClassVar[str]

    type: str
    version: int = 1
    call_id: str
    tenant: str
    session_id: str
    traceparent: str | None = None


class CallRun(CallRecord):
    """Run this call; again with `speculative` false where a task joined a speculation.

    `deadline_at` is the log time after which it must not be started any more.
    `definition` is the hash of the tool as the orchestrator saw it (empty where unknown).
    `approval_id` names the person's approval that the call needed.
    """

    TYPE = "call.run"

    type: Literal["call.run"] = "call.run"
    run_id: str
    task_id: str
    attempt: int = 1
    tool: str
    arguments: dict[str, Json]
    speculative: bool
    effect: Effect
    definition: str = ""
    timeout_ms: int
    deadline_at: str
    isolation: Literal["shared", "tenant", "session"] = "shared"
    approval_id: str | None = None


class CallCancel(CallRecord):
    """Nobody needs this call any more."""

    TYPE = "call.cancel"

    type: Literal["call.cancel"] = "call.cancel"
    reason: str


class CallError(Record):
    """Why a call gave no result; `type` is the error type of CONTRACT.md.

    Where the server answered with an error of JSON-RPC, `details` has its code as `jsonrpc_code`.
    """

    code: str
    type: str = "UNKNOWN"
    message: str
    retryable: bool = False
    details: dict[str, Any] = {}


class ToolResult(Record):
    """What an MCP tool answered: every content kind, and the structured content where there is one.

    Structured content that is no object lies under `result`, and `bare` says so. `meta` is `_meta`.
    """

    content: list[dict[str, Json]] = []
    structured: dict[str, Json] | None = None
    bare: bool | None = None
    meta: dict[str, Json] | None = None


class CallEnded(CallRecord):
    """The one answer to a call. `started_at` is absent where it never started.

    A tool that says itself that it failed gives an error, and beside it as `result` what it said.
    """

    TYPE = "call.ended"

    type: Literal["call.ended"] = "call.ended"
    status: CallStatus
    result: ToolResult | None = None
    error: CallError | None = None
    started_at: str | None = None
    duration_ms: float = 0.0


class CallClaim(CallRecord):
    """ "I am about to run this unsafe call": counts only at the offset it names."""

    TYPE = "call.claim"

    type: Literal["call.claim"] = "call.claim"
    call_offset: int
    runner: str
    offset: int


CALLS: dict[str, type[CallRecord]] = {model.TYPE: model for model in (CallRun, CallCancel)}
OUTCOMES: dict[str, type[CallRecord]] = {CallEnded.TYPE: CallEnded}
CLAIMS: dict[str, type[CallRecord]] = {CallClaim.TYPE: CallClaim}


def task_value(result: ToolResult) -> Any:
    """What `context[task]` is: the structured content's fields, and `content` beside them.

    Structured content is preferred; the content blocks stay reachable as `content` unless the
    structured content has a field of that name (DESIGN §5).
    """
    if result.structured is None:
        return {"content": result.content}
    if "content" in result.structured:
        return result.structured
    return {**result.structured, "content": result.content}
