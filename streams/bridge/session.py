"""One running MCP server, or the connection to one, and the client session on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from importlib.metadata import version
from typing import Any, cast

import anyio
import jsonschema  # noqa: F401  the SDK would import it, 0.3 s long, in the middle of the first call
import mcp_types as types
import structlog
from mcp import Client
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pml.schemas.errors import PMLError
from pml.schemas.sanitiser import sanitise_text
from pml.streams.bridge.http_failure import ANSWER_LOST, CREDENTIALS_REFUSED, NOT_SENT, REQUEST_REFUSED
from pml.streams.bridge.secret_values import NO_SECRETS, SecretValues
from pml.streams.bridge.stdio import Streams
from pml.streams.bridge.unavailable import ServerUnavailable

CLIENT_INFO = types.Implementation(name="pml", version=version("procedural-memory-layer"))
# A paginator that never ends must not hold the start-up; servers list some dozen tools a page.
PAGES_MAX = 100
log = structlog.get_logger("pml.bridge")
# Sets the event when the server is gone.
Connect = Callable[[anyio.Event], AbstractAsyncContextManager[Streams]]


class Session:
    """A server process, or a connection, from its start to its end.

    The SDK's client must be entered and left by one task, so a task of its own keeps it; calls come
    from others. Requests of the server for sampling, elicitation or roots are declined by the SDK,
    which announces none of these capabilities.
    """

    def __init__(
        self,
        name: str,
        connect: Connect,
        on_tools_changed: Callable[[], None],
        secrets: SecretValues = NO_SECRETS,
    ) -> None:
        self._name, self._connect, self._secrets = name, connect, secrets
        self._on_tools_changed = on_tools_changed
        self._gone = anyio.Event()
        self._retired = False
        self._client: Client | None = None
        self._keeper: asyncio.Task[None] | None = None
        self.tools: tuple[types.Tool, ...] = ()
        self.closed_by_us = False
        self.active = 0
        self.used_at_s = 0.0

    @property
    def alive(self) -> bool:
        """Whether calls can be made."""
        return self._client is not None and not self._retired and not self._gone.is_set()

    def hold(self) -> None:
        """Somebody uses it: it is not ended for idleness."""
        self.active += 1

    def release(self) -> None:
        """Somebody uses it no more; one that takes no new calls ends with the last of its old ones."""
        self.active -= 1
        self.used_at_s = asyncio.get_running_loop().time()
        if self._retired and not self.active:
            self._gone.set()

    async def open(self, timeout_s: float) -> None:
        """Start the server, agree on the protocol, list its tools.

        Raises:
            ServerUnavailable: it did not answer properly within `timeout_s`.
        """
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._keeper = asyncio.create_task(self._keep(ready), name=f"mcp-{self._name}")
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.shield(ready)
        except TimeoutError:
            await self.close()
            raise ServerUnavailable(
                f"the MCP server {self._name} did not answer within {timeout_s:g} s of its start"
            ) from None
        except BaseException:
            await self.close()
            raise
        finally:
            ready.cancel()

    async def call(self, tool: str, arguments: dict[str, Any], meta: dict[str, Any]) -> types.CallToolResult:
        """Call a tool; cancelling this sends the server MCP's cancel notification, and the session goes on.

        Raises:
            ServerUnavailable: the server has ended before the call was sent, or knows this session no more.
            MCPError, RuntimeError, pydantic.ValidationError: of the SDK, see `results.failure_of`.
        """
        client = self._client
        if client is None or not self.alive:
            raise ServerUnavailable(f"the MCP server {self._name} has ended")
        self.hold()
        try:
            return await client.call_tool(tool, arguments, meta=cast("types.RequestParamsMeta", meta))
        except MCPError as error:
            if error.code != NOT_SENT:
                raise
            self._retired = True
            raise self._not_sent(tool, self._secrets.taken_from(error.message)) from None
        finally:
            self.release()

    def _not_sent(self, tool: str, said: str) -> Exception:
        """What a request that was not sent means for the call.

        The SDK lists the tools again behind the answer of one that it does not know: the call was sent then.
        """
        if all(listed.name != tool for listed in self.tools):
            return MCPError(ANSWER_LOST, said)
        return ServerUnavailable(f"the MCP server {self._name}: {said}")

    def on_end(self, callback: Callable[[], None]) -> None:
        """Call this when the server has ended, for whatever reason."""
        assert self._keeper is not None
        self._keeper.add_done_callback(lambda _: callback())

    async def list_again(self) -> None:
        """Read the list of tools anew."""
        if self._client is not None:
            self.tools = await _list_tools(self._client)

    async def close(self) -> None:
        """End the server; a call that still runs fails with CONNECTION_CLOSED."""
        self.closed_by_us = True
        self._gone.set()
        if self._keeper is not None:
            if self._client is None:
                self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)

    async def _keep(self, ready: asyncio.Future[None]) -> None:
        try:
            async with Client(
                self._connect(self._gone),
                client_info=CLIENT_INFO,
                message_handler=self._on_message,
                cache=None,
            ) as client:
                self.tools = await _list_tools(client)
                self._client = client
                if not ready.done():
                    ready.set_result(None)
                await self._until_gone(client)
        except Exception as error:
            if not ready.done():
                ready.set_exception(
                    unavailable_for(error)
                    or ServerUnavailable(f"the MCP server {self._name} {reason(error, self._secrets)}")
                )
        finally:
            self._client = None
            self._gone.set()

    async def _until_gone(self, client: Client) -> None:
        listening = asyncio.create_task(self._listen(client))
        try:
            await self._gone.wait()
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _listen(self, client: Client) -> None:
        """Hear that the tools changed, from a server that says it only to who listens (2026-07-28)."""
        tools = client.server_capabilities.tools
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or not (tools and tools.list_changed):
            return
        try:
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._on_tools_changed()
        except (MCPError, SubscriptionLost) as error:
            said = self._secrets.taken_from(str(error))[:200]
            log.info("a server lets nobody listen", server=self._name, error=said)

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._on_tools_changed()


async def _list_tools(client: Client) -> tuple[types.Tool, ...]:
    tools: list[types.Tool] = []
    cursor: str | None = None
    for _ in range(PAGES_MAX):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            break
    return tuple(tools)


def unavailable_for(error: BaseException) -> ServerUnavailable | None:
    """The error itself, where it already says all."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error if isinstance(error, ServerUnavailable) else None


REASON_BYTES = 400


def reason(error: BaseException, secrets: SecretValues = NO_SECRETS) -> str:
    """Why a server could not be started, without its command line or environment.

    The catalog says it to every tenant, and the log keeps it: a server may repeat the `secrets` that it was
    started with.
    """
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, FileNotFoundError):
        return "cannot be started: its command (or cwd) does not exist on this machine"
    if isinstance(error, OSError):
        return f"cannot be started: {error.strerror or type(error).__name__}"
    if isinstance(error, PMLError):
        return f"cannot be started: {error.message}"
    if isinstance(error, MCPError) and error.code in (NOT_SENT, CREDENTIALS_REFUSED, REQUEST_REFUSED):
        return f"cannot be used: {secrets.taken_from(error.message)}"
    said = sanitise_text(secrets.taken_from(str(error)), REASON_BYTES)
    return f"ended or answered wrongly while it was started ({type(error).__name__}: {said})"
