"""Serving one client over standard input and output."""

from __future__ import annotations

from mcp.server.stdio import stdio_server

from pml.streams.client import IntentProducer, new_id
from pml.streams.discovery.finder import Finder
from pml.streams.logs import configure_logging
from pml.streams.mcp_server.door import LOCAL_AGENT, Door
from pml.streams.mcp_server.proxy.proxy import Proxy
from pml.streams.mcp_server.server import make_server
from pml.streams.mcp_server.tools import TOOLS
from pml.streams.mcp_server.whom import person_over_stdio
from pml.streams.settings import Settings


async def serve(settings: Settings) -> None:
    """Serve until the client closes our standard input; logs go to standard error.

    Raises:
        BrokerUnavailable: no broker answers; `pml up` starts one.
    """
    configure_logging(settings.log, role="mcp")
    async with IntentProducer(settings) as producer, Finder(settings) as finder:
        door = Door(
            settings,
            producer,
            finder,
            lambda context: LOCAL_AGENT,
            proxy=None if settings.mcp.tools == "pml" else Proxy(settings, frozenset(TOOLS)),
            connection_session=new_id("ses"),
            person_of=lambda caller: person_over_stdio(settings),
        )
        server = make_server(door)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
