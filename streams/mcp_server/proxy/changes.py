"""Telling clients that the tools are others now."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any

import structlog
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp_types import ToolListChangedNotification
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pml.streams.mcp_server.door import MCP_SESSION_HEADER

# As many clients as the gateway has connections; each has one session, or one stream that it listens to.
CLIENTS_MAX = 1_000
# A client that takes nothing more is told nothing more.
TELL_S = 1.0
log = structlog.get_logger("pml.mcp")


class ListChanges:
    """Clients that listed the tools, and how each is told: by its session, or (2026-07-28) as it listens."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self._sessions: OrderedDict[str, ServerSession] = OrderedDict()
        self.listen = ListenHandler(self._bus, max_subscriptions=CLIENTS_MAX)

    def remember(self, context: ServerRequestContext[Any, Any]) -> None:
        """This client has listed the tools; over stdio there is only one."""
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return
        name = getattr(context.request, "headers", {}).get(MCP_SESSION_HEADER, "")
        self._sessions[name] = context.session
        self._sessions.move_to_end(name)
        if len(self._sessions) > CLIENTS_MAX:
            self._sessions.popitem(last=False)

    async def tell(self) -> None:
        """Tell all of them."""
        await self._bus.publish(ToolsListChanged())
        await asyncio.gather(*(self._tell(name, session) for name, session in list(self._sessions.items())))

    async def _tell(self, name: str, session: ServerSession) -> None:
        try:
            async with asyncio.timeout(TELL_S):
                await session.send_notification(ToolListChangedNotification())
        except Exception as error:  # whatever a connection that is gone raises
            log.debug("a client is gone", error=type(error).__name__)
            self._sessions.pop(name, None)
