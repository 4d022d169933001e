"""The proxy behind a door: what it offers, how a call of it is answered, who hears of changes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp_types import CallToolRequestParams, CallToolResult, Tool
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pml.streams.mcp_server.door import Door, call_of
from pml.streams.mcp_server.person import resumed
from pml.streams.mcp_server.proxy.answers import ToolNotApproved
from pml.streams.mcp_server.proxy.calling import Calling
from pml.streams.mcp_server.proxy.changes import ListChanges
from pml.streams.mcp_server.proxy.earlier import answer_before_2026, tool_before_2026
from pml.streams.mcp_server.proxy.offering import Offering
from pml.streams.settings import Settings

Context = ServerRequestContext[Any, Any]


class Proxy:
    """One for each process.

    Args:
        taken: names that are PML's own.
    """

    def __init__(self, settings: Settings, taken: frozenset[str]) -> None:
        self.changes = ListChanges()
        self._offering = Offering(settings, taken, self.changes.tell)
        self._calling = Calling(settings)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Follow the catalog while the block runs."""
        try:
            async with self._offering.running():
                yield
        finally:
            self.changes.listen.close()
            await self._calling.close()

    async def listed(self, context: Context) -> list[Tool]:
        """The tools that are offered now; this client is told when they change."""
        self.changes.remember(context)
        tools = (await self._offering.now()).listed.values()
        return [tool if is_modern(context) else tool_before_2026(tool) for tool in tools]

    def input_schema(self, name: str) -> dict[str, Any] | None:
        """The schema of a tool's arguments."""
        tool = self._offering.latest.listed.get(name)
        return None if tool is None else tool.input_schema

    async def knows(self, name: str) -> bool:
        """Whether some server has a tool that is offered under this name, or would be if it were allowed."""
        return name in (await self._offering.now()).tools

    async def answer(
        self, door: Door, params: CallToolRequestParams, context: Context, with_pml: bool
    ) -> CallToolResult:
        """What a call of a known tool comes to.

        Raises:
            NotAllowed: the caller may not run anything.
            ToolNotApproved: nobody allowed the tool.
            InputNeeded, MCPError, PMLError: as `Calling.call` has them.
        """
        caller = door.caller_of(context)
        caller.require("runs:write")
        offer = await self._offering.now()
        refusal = offer.refusals.get(params.name)
        if refusal is not None:
            raise ToolNotApproved(refusal.message)
        call = call_of(door, caller, context, resumed(params))
        answer = await self._calling.call(call, offer.tools[params.name], params.arguments or {}, with_pml)
        return answer if is_modern(context) else answer_before_2026(answer)


def is_modern(context: Context) -> bool:
    """Whether the client speaks 2026-07-28 or later."""
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS
