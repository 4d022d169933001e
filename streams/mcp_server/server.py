"""The MCP server: lists the tools, calls them, and tells what came of it."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from typing import Any

import structlog
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)
from pydantic import ValidationError

from pml.schemas.codec import explain
from pml.schemas.errors import PMLError, WaitedTooLong
from pml.schemas.identifiers import is_name
from pml.streams.gateway.problems import Unexpected
from pml.streams.mcp_server.apart import apart
from pml.streams.mcp_server.door import Door, call_of
from pml.streams.mcp_server.failures import InvalidArguments, failed
from pml.streams.mcp_server.instructions import INSTRUCTIONS
from pml.streams.mcp_server.shapes import Answer, schema_of
from pml.streams.mcp_server.tools import TOOLS, ToolSpec

Context = ServerRequestContext[Any, Any]
# A broker that is away takes no command; who waits for a run waits 50 s at most, and clients give 60.
ANSWER_S = 55.0
log = structlog.get_logger("pml.mcp")


def make_server(door: Door) -> Server[dict[str, Any]]:
    """A server whose tools go through this door."""

    async def list_tools(context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[tool.listed() for tool in TOOLS.values()])

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"there is no tool {params.name[:64]!r}")
        return await apart(answered(door, tool, params.arguments or {}, context))

    return Server(
        "pml",
        version=version("procedural-memory-layer"),
        title="PML, the Procedural Memory Layer",
        instructions=INSTRUCTIONS,
        get_tool_input_schema=input_schema,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def input_schema(name: str) -> dict[str, Any] | None:
    """The schema of a tool's arguments."""
    tool = TOOLS.get(name)
    return None if tool is None else schema_of(tool.asked)


async def answered(door: Door, tool: ToolSpec, arguments: dict[str, Any], context: Context) -> CallToolResult:
    """What a call came to; every error is an answer, and none is told as a success."""
    run_id = arguments.get("run_id")
    named = run_id if isinstance(run_id, str) and is_name(run_id) else None
    try:
        caller = door.caller_of(context)
        caller.require(tool.scope)
        asked = tool.asked.model_validate(arguments)
        async with asyncio.timeout(ANSWER_S):
            answer = await tool.run(call_of(door, caller, context), asked)
        return told(tool, answer)
    except ValidationError as error:
        return failed(InvalidArguments(f"the arguments are wrong: {explain(error)}"), named)
    except TimeoutError:
        return failed(
            WaitedTooLong(f"no answer within {ANSWER_S:g} s; `pml status` says what is wrong"), named
        )
    except PMLError as error:
        return failed(error, named)
    except Exception as error:
        log.error("a tool failed", tool=tool.name, error=type(error).__name__, exc_info=True)
        return failed(Unexpected("PML made a mistake; its log says more"), named)


def told(tool: ToolSpec, answer: Answer) -> CallToolResult:
    """The answer, structured and as a short text; where what was asked for failed, as an error."""
    text, failure = tool.render(answer), tool.failure(answer)
    if failure is not None:
        return failed(failure, getattr(answer, "run_id", None), text)
    return CallToolResult(content=[TextContent(text=text)], structured_content=answer.model_dump(mode="json"))
