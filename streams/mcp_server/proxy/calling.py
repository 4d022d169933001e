"""Calling a tool of another server: through the log, as every call of PML."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from mcp_types import CallToolResult

from pml.processors.workflow.obedience import SessionFull
from pml.schemas.errors import PMLError, Refused
from pml.schemas.events import CommandRejected, Event, TaskCompleted
from pml.streams.client import new_id, rejection
from pml.streams.live_events import LiveEvents, Watcher
from pml.streams.mcp_server.door import Call
from pml.streams.mcp_server.progress import telling
from pml.streams.mcp_server.proxy.answers import (
    Later,
    answered_at,
    as_answered,
    error_in,
    failure_of,
    goes_on,
    waits_for_person,
)
from pml.streams.mcp_server.proxy.one_call import TASK, OneCall, early, workflow_of
from pml.streams.mcp_server.shapes import WAIT_MAX_S
from pml.streams.settings import Settings
from pml.streams.standing_results import StandingResults

# A gateway that was started again finds the parts that are full one by one, each in some 15 ms.
PARTS_TRIED = 50


class Calling:
    """Calls tools, each as a run of its session; one for each process.

    Args:
        wait_s: how long a call is waited for at most.
    """

    def __init__(self, settings: Settings, wait_s: float = WAIT_MAX_S) -> None:
        self._settings, self._wait_s = settings, wait_s
        self._events = LiveEvents(settings)
        self._results = StandingResults(settings)

    async def close(self) -> None:
        """Close the connections."""
        await self._events.close()
        await self._results.close()

    async def call(
        self, call: Call, tool: str, arguments: Mapping[str, Any], with_pml: bool
    ) -> CallToolResult:
        """What the tool answers; whoever stops to wait stops nothing.

        Args:
            with_pml: whether PML's own tools are there to ask for the result later.

        Raises:
            MCPError: the server answered with an error of the protocol.
            CallFailed: there is no answer of the server.
            ApprovalPending, CallGoesOn: there is none yet.
            Refused: the call was not taken.
            Busy: as many requests wait as may.
            BrokerUnavailable: no broker answers.
        """
        named, parts = call.meta_session or call.mcp_session, call.door.parts
        workflow, tenant = workflow_of(tool, arguments), call.caller.tenant
        with call.door.waiting.one_more():
            for _ in range(PARTS_TRIED):
                one = OneCall(new_id("run"), new_id("cmd"))
                session = parts.next_run(tenant, named) if named else one.run_id
                try:
                    return await self._once(call, one, session, workflow, with_pml)
                except Refused as error:
                    if named is None or error.code != SessionFull.code:
                        raise
                    parts.full(tenant, named, session)
        raise SessionFull(f"session {named} and {PARTS_TRIED - 1} more parts of it are full; use another one")

    async def _once(
        self, call: Call, one: OneCall, session: str, workflow: dict[str, Any], with_pml: bool
    ) -> CallToolResult:
        try:
            async with telling(call.report) as progress:
                event = await self._end(call, one, session, workflow)
                if event is not None:
                    progress.tell(1, 1, int(early(event)))
                    return await self._answer(event)
        except PMLError as error:
            error.details.setdefault("run_id", one.run_id)
            raise
        later = Later(one.run_id, session, TASK, with_pml)
        if one.approval is not None:
            raise waits_for_person(one.approval, later)
        raise goes_on(self._wait_s, one.taken, later)

    async def _end(self, call: Call, one: OneCall, session: str, workflow: dict[str, Any]) -> Event | None:
        """The event that the call ends with; None where that takes too long."""
        async with self._events.watching(call.caller.tenant, session, one.see) as watcher:
            await call.door.producer.start_run(
                workflow,
                session_id=session,
                run_id=one.run_id,
                command_id=one.command_id,
                tenant=call.caller.tenant,
                principal=call.caller.principal,
                traceparent=call.traceparent,
            )
            call.door.remembered.keep(call.caller.tenant, one.run_id, session)
            return await self._waited(one, watcher)

    async def _waited(self, one: OneCall, watcher: Watcher) -> Event | None:
        waits: tuple[asyncio.Future[Any], ...] = (one.ended, watcher.failed)
        await asyncio.wait(waits, timeout=self._wait_s, return_when=asyncio.FIRST_COMPLETED)
        if one.ended.done():
            return one.ended.result()
        if watcher.failed.done():
            watcher.failed.result()
        return None

    async def _answer(self, event: Event) -> CallToolResult:
        if isinstance(event.data, CommandRejected):
            raise rejection(event.data)
        if isinstance(event.data, TaskCompleted):
            return as_answered(await self._results.result(event.data.result_ref))
        answered = answered_at(event, self._settings.topics.tool_outcomes)
        outcome = None if answered is None else await self._results.outcome(answered)
        if outcome is None or outcome.call_id != getattr(event.data, "call_id", None):
            raise error_in(event)
        return failure_of(outcome)
