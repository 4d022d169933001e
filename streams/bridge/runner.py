"""Runs one call on its server: connect, claim where it is unsafe, call, measure."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import mcp_types as types
import structlog

from pml.schemas.calls import LATE_ANSWER_S, CallEnded, CallError, CallRun
from pml.schemas.identifiers import INTERNAL_SERVER, split_tool
from pml.schemas.times import to_rfc3339
from pml.streams.bridge.builtin import Builtin
from pml.streams.bridge.call import Call, ended, overdue
from pml.streams.bridge.claims import Claims
from pml.streams.bridge.results import Answer, answer_of, failure_of, timed_out
from pml.streams.bridge.server import Server
from pml.streams.bridge.session import Session
from pml.streams.bridge.unavailable import ServerUnavailable
from pml.streams.clock import Clock, now_ms
from pml.streams.crash_points import crash_point

log = structlog.get_logger("pml.bridge")
Request = asyncio.Task[types.CallToolResult]


class Runner:
    """Executes admitted calls. `on_late` takes the answer of an unsafe call that came after its time-out."""

    def __init__(
        self,
        servers: Mapping[str, Server],
        result_max_bytes: int,
        on_late: Callable[[CallEnded], Awaitable[None]],
        now_ms: Clock = now_ms,
        builtin: Builtin | None = None,
    ) -> None:
        self._servers, self._result_max_bytes, self._on_late = servers, result_max_bytes, on_late
        self._now_ms = now_ms
        self._builtin = builtin or Builtin({})
        self._late: set[asyncio.Task[None]] = set()

    async def run(self, call: Call, claims: Claims) -> CallEnded | None:
        """The answer to a call; None where somebody else has claimed it.

        Cancelling this cancels the request at the server, but for an unsafe call that has started.

        Raises:
            BrokerUnavailable, InDoubt: a claim could not be written.
        """
        run = call.run
        if call.is_overdue(self._now_ms()):
            return overdue(run)
        if call.ticket.server == INTERNAL_SERVER:
            return await self._builtin.run(run, to_rfc3339(self._now_ms()))
        try:
            return await self._in_session(call, claims)
        except ServerUnavailable as error:
            failure = CallError(code=error.code, type="NETWORK", message=error.message, retryable=True)
            return ended(run, "not_started", error=failure)

    async def _in_session(self, call: Call, claims: Claims) -> CallEnded | None:
        """In the session that there is; in a new one where that had ended before the call was sent.

        Also where it was ended for idleness in the very moment in which it was handed out.
        """
        run, server = call.run, self._servers[call.ticket.server]
        async with server.session(run.tenant, run.session_id) as session:
            with suppress(ServerUnavailable):
                return await self._claim_and_call(call, claims, session)
        async with server.session(run.tenant, run.session_id) as session:
            return await self._claim_and_call(call, claims, session)

    async def close(self) -> None:
        """Wait no longer for late answers."""
        for task in self._late:
            task.cancel()
        await asyncio.gather(*self._late, return_exceptions=True)

    async def _claim_and_call(self, call: Call, claims: Claims, session: Session) -> CallEnded | None:
        if call.unsafe and not call.started:
            crash_point("bridge.before_claim")
            call.started = True
            if not await claims.claim(call.run, call.offset):
                return None
            crash_point("bridge.after_claim")
        if call.is_overdue(self._now_ms()):
            return overdue(call.run)
        started_at, began_s = to_rfc3339(self._now_ms()), _now_s()
        status, result, error = await self._answer(call, session, started_at, began_s)
        crash_point("bridge.after_call")
        return ended(call.run, status, result, error, started_at=started_at, duration_ms=_elapsed_ms(began_s))

    async def _answer(self, call: Call, session: Session, started_at: str, began_s: float) -> Answer:
        request = asyncio.create_task(self._request(call, session))
        try:
            await asyncio.wait({request}, timeout=call.run.timeout_ms / 1000)
        except asyncio.CancelledError:
            await _stopped(request)
            raise
        if request.done():
            return self._read(call, request)
        if call.unsafe:
            self._keep(call, asyncio.create_task(self._answer_late(call, request, started_at, began_s)))
        else:
            await _stopped(request)
        return timed_out(call.run.timeout_ms / 1000)

    async def _request(self, call: Call, session: Session) -> types.CallToolResult:
        run = call.run
        return await session.call(split_tool(run.tool)[1], run.arguments, meta_of(call))

    def _read(self, call: Call, request: Request) -> Answer:
        server = self._servers[call.ticket.server]
        try:
            answer = answer_of(request.result(), self._result_max_bytes, server.secrets)
        except ServerUnavailable:
            raise
        except Exception as error:
            return failure_of(error, call.ticket.server, server.secrets)
        server.answered(call.run.tenant)
        return answer

    async def _answer_late(self, call: Call, request: Request, started_at: str, began_s: float) -> None:
        try:
            await asyncio.wait({request}, timeout=LATE_ANSWER_S)
            if not request.done():
                return
            status, result, error = self._read(call, request)
            if error is None or error.code != "CONNECTION_LOST":
                duration_ms = _elapsed_ms(began_s)
                await self._on_late(
                    ended(call.run, status, result, error, started_at=started_at, duration_ms=duration_ms)
                )
        except ServerUnavailable:
            return
        finally:
            await _stopped(request)

    def _keep(self, call: Call, task: asyncio.Task[None]) -> None:
        self._late.add(task)
        task.add_done_callback(partial(self._forget, call.run))

    def _forget(self, run: CallRun, task: asyncio.Task[None]) -> None:
        self._late.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error(
                "late answer lost; its task is unknown until it is resolved",
                run_id=run.run_id,
                task_id=run.task_id,
                call_id=run.call_id,
                error=str(error),
            )


def meta_of(call: Call) -> dict[str, Any]:
    """What the server is told beside the arguments: the call id is an idempotency key."""
    meta: dict[str, Any] = {
        "pml/call-id": call.run.call_id,
        "pml/speculative": call.ticket.speculative,
    }
    if call.run.traceparent is not None:
        meta["traceparent"] = call.run.traceparent
    return meta


async def _stopped(request: Request) -> None:
    """Cancel a request, which tells the server, and wait for its end."""
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)


def _elapsed_ms(began_s: float) -> float:
    return (_now_s() - began_s) * 1000


def _now_s() -> float:
    return asyncio.get_running_loop().time()
