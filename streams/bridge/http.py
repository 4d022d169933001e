"""Streamable HTTP under the MCP SDK's client: one connection for one holder of credentials."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client

from pml.streams.bridge.credentials import Wallet
from pml.streams.bridge.http_exchange import HttpExchange
from pml.streams.bridge.oauth import TokenAuth
from pml.streams.bridge.server_specs import HttpServer
from pml.streams.bridge.stdio import Streams
from pml.streams.bridge.unavailable import ServerUnavailable

# An event's own lines around its data.
EVENT_EDGE_BYTES = 4096


@asynccontextmanager
async def http_transport(
    name: str, spec: HttpServer, tenant: str, answer_max_bytes: int, gone: anyio.Event
) -> AsyncGenerator[Streams, None]:
    """Connect to the server with the credentials of a tenant; `gone` is set when the connection has ended.

    Raises:
        ServerUnavailable: the tenant has no credentials there.
    """
    given = spec.credentials(tenant)
    if given is None:
        raise ServerUnavailable(
            f"the MCP server {name} has no credentials for the tenant {tenant}; name it under `tenants` "
            "of this server in mcp-servers.yaml"
        )
    wallet = Wallet(name, given, address=spec.address())
    wallet.headers()
    auth = TokenAuth(spec.address(), given.oauth, wallet) if given.oauth else None
    exchange = HttpExchange(spec, wallet, answer_max_bytes)
    try:
        async with (
            httpx2.AsyncClient(transport=exchange, auth=auth, trust_env=False) as client,
            streamable_http_client(
                spec.address(), http_client=client, max_sse_event_size=answer_max_bytes + EVENT_EDGE_BYTES
            ) as streams,
        ):
            yield streams  # type: ignore[misc]
    finally:
        gone.set()
