"""A real MCP server whose tools do nothing but take the time that they are told to take.

    python benchmarks/speculation/replay.py

`read` may run early, `volatile` is a read that the operator's file does not let run early, `write` is unsafe.
Whatever else they are called with is the workflow's own data.
"""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
import uvloop
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

SCHEMA = {
    "type": "object",
    "properties": {"_tool": {"type": "string"}, "_latency_ms": {"type": "number", "minimum": 0}},
    "required": ["_tool", "_latency_ms"],
    "additionalProperties": True,
}


def tool(name: str, description: str, reads: bool) -> types.Tool:
    """One of the tools."""
    hints = types.ToolAnnotations(
        read_only_hint=reads, destructive_hint=not reads, idempotent_hint=reads, open_world_hint=False
    )
    return types.Tool(name=name, description=description, input_schema=SCHEMA, annotations=hints)


TOOLS = [
    tool("read", "Stand for a tool that only reads.", True),
    tool("volatile", "Stand for a tool that reads what changes by itself.", True),
    tool("write", "Stand for a tool that changes something.", False),
]


async def list_tools(context: Any, parameters: Any) -> types.ListToolsResult:
    """The three of them."""
    return types.ListToolsResult(tools=TOOLS)


async def call_tool(context: Any, parameters: types.CallToolRequestParams) -> types.CallToolResult:
    """Sleep, then answer with the name of the tool that is stood for."""
    arguments = parameters.arguments or {}
    await asyncio.sleep(arguments["_latency_ms"] / 1_000)
    return types.CallToolResult(content=[], structured_content={"value": f"what {arguments['_tool']} gave"})


async def serve() -> None:
    """Until standard input ends."""
    server = Server("replay", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    uvloop.run(serve())
