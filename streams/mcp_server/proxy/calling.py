"""Calling a tool of another server: through the log, as every call of PML."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from mcp_types import CallToolResult

from pml.schemas.errors import PMLError
from pml.schemas.events import CommandRejected, Event, TaskCompleted
from pml.streams.client import new_id, rejection
from pml.streams.live_events import LiveEvents, Watcher
from pml.streams.mcp_server.door import Call
from pml.streams.mcp_server.following import send_word
from pml.streams.mcp_server.form import form_of
from pml.streams.mcp_server.person import Resumed
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
from pml.streams.mcp_server.session_parts import Part
from pml.streams.mcp_server.shapes import WAIT_MAX_S
from pml.streams.run_history import session_events
from pml.streams.settings import Settings
from pml.streams.standing_results import StandingResults


async def _ask(call: Call, one: OneCall, session: str, patience_s: float) -> None:
    """Ask the person at the client what the call waits for, until it has ended by itself.

    Raises:
        InputNeeded: the client is to ask them, and to come again.
    """
    request, one.asked = one.asked.result(), asyncio.get_running_loop().create_future()
    form = form_of(request.approval_id, request.model_dump(), one.run_id, None)
    if form is None or call.person is None:
        return
    place = {"run_id": one.run_id, "session_id": session}
    asking = asyncio.create_task(call.person.ask(request.approval_id, form, place, patience_s))
    try:
        await asyncio.wait((asking, one.ended), return_when=asyncio.FIRST_COMPLETED)
        word = asking.result() if asking.done() else None
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    if word is not None:
        await send_word(call, one.run_id, session, word)


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
            InputNeeded: the client is to ask a person first, and to come again.
            Refused: the call was not taken.
            Busy: as many requests wait as may.
            BrokerUnavailable: no broker answers.
        """
        if call.resumed is not None:
            with call.door.waiting.one_more():
                return await self._resumed(call, call.resumed, with_pml)

        async def once(part: Part, wait_s: float) -> CallToolResult:
            return await self._once(call, part, workflow_of(tool, arguments, part.early), wait_s, with_pml)

        with call.door.waiting.one_more():
            return await call.conversation().begin(once, self._wait_s)

    async def _once(
        self, call: Call, part: Part, workflow: dict[str, Any], wait_s: float, with_pml: bool
    ) -> CallToolResult:
        one = OneCall(new_id("run"), new_id("cmd"))
        session = part.session_id or one.run_id
        try:
            async with telling(call.report) as progress:
                event = await self._end(call, one, session, workflow, wait_s)
                if event is not None:
                    progress.tell(1, 1, int(early(event)))
                    return await self._answer(event)
        except PMLError as error:
            error.details.setdefault("run_id", one.run_id)
            raise
        raise self._nothing_yet(one, Later(one.run_id, session, TASK, with_pml))

    async def _resumed(self, call: Call, again: Resumed, with_pml: bool) -> CallToolResult:
        """The answer of a call that comes again after a person was asked; it is not made a second time."""
        event = await self._end_after(call, again) if again.word and call.person else None
        one = OneCall(again.run_id, "")
        if event is None or isinstance(event.data, CommandRejected):
            # Somebody else decided, or nobody did: how it stands is in the log.
            for earlier in await session_events(self._settings, call.caller.tenant, again.session_id):
                one.see(earlier)
            event = one.ended.result() if one.ended.done() else None
        if event is not None:
            return await self._answer(event)
        raise self._nothing_yet(one, Later(again.run_id, again.session_id, TASK, with_pml))

    async def _end_after(self, call: Call, again: Resumed) -> Event | None:
        """The event that a call ends with once a person has decided; None where that takes too long."""
        assert again.word is not None
        one = OneCall(again.run_id, "")
        async with self._events.watching(call.caller.tenant, again.session_id, one.see) as watcher:
            sent = await send_word(call, again.run_id, again.session_id, again.word)
            one.command_id = sent.command_id
            return await self._waited(call, one, again.session_id, watcher, self._wait_s)

    def _nothing_yet(self, one: OneCall, later: Later) -> PMLError:
        """Why there is no answer."""
        if one.approval is not None:
            return waits_for_person(one.approval, later)
        return goes_on(self._wait_s, one.taken, later)

    async def _end(
        self, call: Call, one: OneCall, session: str, workflow: dict[str, Any], wait_s: float
    ) -> Event | None:
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
                request=call.request,
                context=call.context,
            )
            call.door.remembered.keep(call.caller.tenant, one.run_id, session)
            return await self._waited(call, one, session, watcher, wait_s)

    async def _waited(
        self, call: Call, one: OneCall, session: str, watcher: Watcher, wait_s: float
    ) -> Event | None:
        now_s = asyncio.get_running_loop().time
        ends_s = now_s() + wait_s
        while True:
            waits: list[asyncio.Future[Any]] = [one.ended, watcher.failed]
            waits += [one.asked] if call.person else []
            await asyncio.wait(waits, timeout=ends_s - now_s(), return_when=asyncio.FIRST_COMPLETED)
            if one.ended.done():
                return one.ended.result()
            if watcher.failed.done():
                watcher.failed.result()
            if call.person is None or not one.asked.done():
                return None
            await _ask(call, one, session, ends_s - now_s())

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
