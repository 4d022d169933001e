"""Serving clients over streamable HTTP, as a part of the gateway."""

from __future__ import annotations

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from pml.schemas.errors import PMLError
from pml.streams.gateway.callers import Caller, Callers
from pml.streams.gateway.doors import Doors
from pml.streams.gateway.problems import problem
from pml.streams.mcp_server.door import Door
from pml.streams.mcp_server.proxy.proxy import Proxy
from pml.streams.mcp_server.server import make_server
from pml.streams.mcp_server.tools import TOOLS
from pml.streams.mcp_server.whom import person_over_http

PATH = "/mcp"
SESSIONS_MAX = 1_000
"""Each has a task and some streams; as many as the gateway has connections."""


def session_manager(doors: Doors) -> StreamableHTTPSessionManager:
    """What serves the clients of a gateway; its `run` is entered once, while the gateway runs.

    Hosts, origins and sizes are checked by the guards of the gateway before.
    """

    def caller_of(context: ServerRequestContext[object, Request]) -> Caller:
        request = context.request
        return doors.callers.of(None if request is None else request.headers.get("authorization"))

    proxy = Proxy(doors.settings, frozenset(TOOLS))
    door = Door(
        doors.settings,
        doors.producer,
        doors.finder,
        caller_of,
        doors.waiting,
        proxy=proxy,
        person_of=lambda caller: person_over_http(doors.settings, caller),
        state_key=doors.settings.installation_key(),
    )
    return StreamableHTTPSessionManager(
        make_server(door),
        max_request_body_size=doors.settings.gateway.body_bytes_max,
        max_sessions=SESSIONS_MAX,
    )


class McpEndpoint:
    """ASGI: lets nobody in who is not known, and binds a session of the transport to who opened it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = scope["app"].state
        callers: Callers = state.doors.callers
        request = Request(scope)
        try:
            caller = callers.of(request.headers.get("authorization"))
        except PMLError as error:
            await problem(error)(scope, receive, send)
            return
        scope["user"] = user_of(caller)
        try:
            await state.mcp.handle_request(scope, receive, send)
        except PMLError as error:
            await problem(error)(scope, receive, send)


def user_of(caller: Caller) -> AuthenticatedUser:
    """The caller as the SDK compares those of one session: by tenant and principal."""
    identity = AccessToken(token="", client_id=caller.principal, scopes=[], subject=caller.tenant)
    return AuthenticatedUser(identity)
