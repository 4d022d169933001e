"""What a call is answered: what its server said, whole; or why there is nothing of the kind. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult

from pml.schemas.base import Coordinate
from pml.schemas.calls import CallEnded, CallError, ToolResult
from pml.schemas.errors import PMLError
from pml.schemas.events import ApprovalRequested, Event, RunEnded, TaskFailed, TaskUnknown


class ToolNotApproved(PMLError):
    """A tool that no entry of the permissions file allows, or that changed since."""

    code = "TOOL_NOT_APPROVED"


class ApprovalPending(PMLError):
    """A call that waits for a person; it goes on waiting when its caller has gone."""

    code = "APPROVAL_PENDING"


class CallGoesOn(PMLError):
    """A call that takes longer than a client waits; it goes on."""

    code = "STILL_RUNNING"


class CallFailed(PMLError):
    """A call without an answer of its server; the code is that of its task, or of its run."""

    code = "CALL_FAILED"


def as_answered(result: ToolResult, *, is_error: bool = False) -> CallToolResult:
    """The answer of a server as it gave it."""
    structured: Any = result.structured
    if result.bare and structured is not None:
        structured = structured["result"]
    return CallToolResult.model_validate(
        {
            "content": result.content,
            "structuredContent": structured,
            "isError": is_error,
            "_meta": result.meta,
        }
    )


def failure_of(outcome: CallEnded) -> CallToolResult:
    """What a call is answered that failed at its server.

    Raises:
        MCPError: the server answered with an error of the protocol.
        CallFailed: it did not answer, or with what cannot be passed on.
    """
    if outcome.result is not None:
        return as_answered(outcome.result, is_error=True)
    error = outcome.error or CallError(code=outcome.status.upper(), message=f"the call is {outcome.status}")
    code = error.details.get("jsonrpc_code")
    if isinstance(code, int):
        raise MCPError(code, error.message)
    raise call_failed(error)


def call_failed(error: CallError | dict[str, Any] | None) -> CallFailed:
    """The error of a task or of a run."""
    told = CallError.model_validate({"code": CallFailed.code, "message": "the call failed", **_fields(error)})
    failed = CallFailed(told.message)
    failed.code, failed.retryable = told.code, told.retryable
    return failed


def _fields(error: CallError | dict[str, Any] | None) -> dict[str, Any]:
    return error.model_dump() if isinstance(error, CallError) else dict(error or {})


def answered_at(event: Event, outcomes_topic: str) -> Coordinate | None:
    """Where the answer rests that a failure comes from; None where it comes from something else."""
    cause = event.cause
    if not isinstance(event.data, TaskFailed) or cause is None or cause.topic != outcomes_topic:
        return None
    return Coordinate(topic=cause.topic, partition=cause.partition, offset=cause.offset)


def error_in(event: Event) -> CallFailed:
    """The error of the event that a call without an answer ended with."""
    data = event.data
    if isinstance(data, (TaskFailed, TaskUnknown)):
        return call_failed(data.error)
    return call_failed(data.error if isinstance(data, RunEnded) else None)


@dataclass(frozen=True, slots=True)
class Later:
    """Where the result of a call will be; `with_pml`: whether PML's own tools are there to ask for it."""

    run_id: str
    session_id: str
    task_id: str
    with_pml: bool

    def told(self) -> str:
        """How it is got."""
        if not self.with_pml:
            return f"`pml run show {self.run_id} --session {self.session_id}` shows its result."
        place = f"run_id {self.run_id}, task_id {self.task_id}, session {self.session_id}"
        return f"pml_get_task_result has its result ({place})."

    def details(self) -> dict[str, str]:
        """The same for programs."""
        return {"run_id": self.run_id, "session_id": self.session_id, "task_id": self.task_id}


def waits_for_person(asked: ApprovalRequested, later: Later) -> ApprovalPending:
    """Whose turn it is, and where the result will be."""
    place = f"{asked.approval_id} --session {later.session_id}"
    return ApprovalPending(
        f"{asked.tool} waits for a person until {asked.expires_at}: `pml approvals approve {place}` or "
        f"`pml approvals reject {place}`. Do not call it again: once approved it runs, and {later.told()}",
        approval_id=asked.approval_id,
        **later.details(),
    )


def goes_on(seconds: float, taken: bool, later: Later) -> CallGoesOn:
    """That it was not answered in time, and where the result will be."""
    nobody = "" if taken else " Nobody has taken it yet; `pml status` says whether an orchestrator runs."
    return CallGoesOn(
        f"the tool did not answer within {seconds:g} s and goes on. Do not call it again: "
        f"{later.told()}{nobody}",
        **later.details(),
    )
