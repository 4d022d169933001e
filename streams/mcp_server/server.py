"""The MCP server: lists the tools, calls them, and tells what came of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from importlib.metadata import version
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)

from pml.schemas.identifiers import is_name
from pml.streams.mcp_server.apart import apart
from pml.streams.mcp_server.door import Door, call_of
from pml.streams.mcp_server.failures import failed, or_failed
from pml.streams.mcp_server.instructions import INSTRUCTIONS
from pml.streams.mcp_server.person import InputNeeded, boundary, resumed
from pml.streams.mcp_server.proxy.choice import chosen
from pml.streams.mcp_server.proxy.instructions import instructions_for
from pml.streams.mcp_server.proxy.proxy import Proxy
from pml.streams.mcp_server.resuming import resume
from pml.streams.mcp_server.shapes import WAIT_S, Answer, schema_of
from pml.streams.mcp_server.tools import TOOLS, ToolSpec

Context = ServerRequestContext[Any, Any]


def make_server(door: Door) -> Server[dict[str, Any]]:
    """A server whose tools go through this door, and those that the door's proxy offers."""
    default = door.settings.mcp.tools
    proxy = door.proxy

    async def list_tools(context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        choice = chosen(context, default)
        own = [] if choice == "proxy" else [tool.listed() for tool in TOOLS.values()]
        others = [] if choice == "pml" or proxy is None else await proxy.listed(context)
        return ListToolsResult(tools=own + others)

    async def call_tool(
        context: Context, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        choice, tool = chosen(context, default), TOOLS.get(params.name)
        try:
            if tool is not None and choice != "proxy":
                return await apart(answered(door, tool, params, context))
            if proxy is not None and choice != "pml" and await proxy.knows(params.name):
                answer = proxy.answer(door, params, context, with_pml=choice == "both")
                return await apart(or_failed(answer, None, params.name))
        except InputNeeded as needed:
            return needed.result
        raise MCPError(INVALID_PARAMS, f"there is no tool {params.name[:64]!r}")

    def input_schema(name: str) -> dict[str, Any] | None:
        tool = TOOLS.get(name)
        if tool is not None:
            return schema_of(tool.asked)
        return None if proxy is None else proxy.input_schema(name)

    server = _Server(
        "pml",
        version=version("procedural-memory-layer"),
        title="PML, the Procedural Memory Layer",
        instructions=instructions_for(default) if proxy else INSTRUCTIONS,
        lifespan=partial(_life, proxy),
        get_tool_input_schema=input_schema,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_subscriptions_listen=proxy.changes.listen if proxy else None,
    )
    server.middleware.append(boundary(door.state_key, partial(_identity, door)))
    return server


def _identity(door: Door, context: Context) -> str:
    """Who sent a request, as it is told whether another one comes from them."""
    caller = door.caller_of(context)
    return f"{caller.tenant}/{caller.principal}"


class _Server(Server[dict[str, Any]]):
    """Says to clients of before 2026-07-28 that its tools may change; later ones see it by themselves."""

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *arguments: Any, **named: Any
    ) -> InitializationOptions:
        """As the SDK has it."""
        changing = self.get_request_handler("subscriptions/listen") is not None
        options = notification_options or NotificationOptions(tools_changed=changing)
        return super().create_initialization_options(options, *arguments, **named)


@asynccontextmanager
async def _life(proxy: Proxy | None, server: Server[Any]) -> AsyncIterator[dict[str, Any]]:
    """The proxy runs while the server does."""
    async with nullcontext() if proxy is None else proxy.running():
        yield {}


async def answered(
    door: Door, tool: ToolSpec, params: CallToolRequestParams, context: Context
) -> CallToolResult:
    """What a call came to; every error is an answer, and none is told as a success."""
    run_id = (params.arguments or {}).get("run_id")
    named = run_id if isinstance(run_id, str) and is_name(run_id) else None
    return await or_failed(_answer(door, tool, params, context), named, tool.name)


async def _answer(
    door: Door, tool: ToolSpec, params: CallToolRequestParams, context: Context
) -> CallToolResult:
    caller = door.caller_of(context)
    caller.require(tool.scope)
    asked = tool.asked.model_validate(params.arguments or {})
    again = resumed(params)
    call = call_of(door, caller, context, again)
    if again is not None:
        return told(tool, await resume(call, again, getattr(asked, "wait_s", WAIT_S)))
    return told(tool, await tool.run(call, asked))


def told(tool: ToolSpec, answer: Answer) -> CallToolResult:
    """The answer, structured and as a short text; where what was asked for failed, as an error."""
    text, failure = tool.render(answer), tool.failure(answer)
    if failure is not None:
        return failed(failure, getattr(answer, "run_id", None), text)
    return CallToolResult(content=[TextContent(text=text)], structured_content=answer.model_dump(mode="json"))
