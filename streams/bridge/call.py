"""A call between its record and its answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from pml.schemas.calls import CallEnded, CallError, CallRun, CallStatus, ToolResult
from pml.schemas.errors import UndecodableRecord
from pml.schemas.identifiers import session_key, split_tool
from pml.schemas.times import from_rfc3339
from pml.streams.bridge.admission import Ticket


@dataclass(slots=True, eq=False)
class Call:
    """One call that is waiting or running here.

    `started` says that an unsafe call may have been sent: from then on nothing cancels it.
    `cancel_code` is why a call was cancelled. One that was `let_go` is not answered, unless it is
    `answering` already: its record is read again, by whoever owns the partition then.
    """

    run: CallRun
    partition: int
    offset: int
    size_bytes: int
    deadline_ms: int
    ticket: Ticket
    started: bool = False
    cancel_code: str | None = None
    let_go: bool = False
    answering: bool = False
    execution: asyncio.Task[CallEnded | None] | None = None

    @classmethod
    def of(cls, run: CallRun, partition: int, offset: int, size_bytes: int) -> Call:
        """The call of a record.

        Raises:
            UndecodableRecord: `deadline_at` is no time.
        """
        try:
            deadline_ms = from_rfc3339(run.deadline_at)
        except ValueError:
            raise UndecodableRecord("wrong shape: deadline_at is no RFC 3339 time") from None
        session = session_key(run.tenant, run.session_id).decode()
        ticket = Ticket(split_tool(run.tool)[0], session, run.speculative)
        return cls(run, partition, offset, size_bytes, deadline_ms, ticket)

    def interrupt(self) -> None:
        """Stop its execution, now or when it begins."""
        if self.execution is not None:
            self.execution.cancel()

    @property
    def interrupted(self) -> bool:
        """Whether its execution must not begin."""
        return self.let_go or self.cancel_code is not None

    @property
    def unsafe(self) -> bool:
        """Whether it may change the world."""
        return self.run.effect == "write"

    def is_overdue(self, now_ms: int) -> bool:
        """Whether it must not be started any more."""
        return now_ms > self.deadline_ms


def ended(
    run: CallRun,
    status: CallStatus,
    result: ToolResult | None = None,
    error: CallError | None = None,
    *,
    started_at: str | None = None,
    duration_ms: float = 0.0,
) -> CallEnded:
    """The answer to a call."""
    return CallEnded(
        call_id=run.call_id,
        tenant=run.tenant,
        session_id=run.session_id,
        traceparent=run.traceparent,
        status=status,
        result=result,
        error=error,
        started_at=started_at,
        duration_ms=round(duration_ms, 3),
    )


def refused(run: CallRun, code: str, message: str) -> CallEnded:
    """A call that is not allowed here."""
    return ended(run, "refused", error=CallError(code=code, type="PERMISSION", message=message))


def cancelled(run: CallRun, code: str) -> CallEnded:
    """A call that nobody needs any more, or that gave way."""
    return ended(
        run, "cancelled", error=CallError(code=code, message=f"the call was cancelled: {code.lower()}")
    )


def overdue(run: CallRun) -> CallEnded:
    """A call whose turn came too late."""
    message = f"the call was not started before {run.deadline_at}: no slot was free, or the bridge was away"
    return ended(run, "not_started", error=CallError(code="DEADLINE", type="TIMEOUT", message=message))
