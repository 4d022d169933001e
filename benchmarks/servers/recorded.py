"""A real MCP server that gives recorded results, each after the time that its call takes.

    python -m benchmarks.servers.recorded FILE

FILE is what `benchmarks.end_to_end.live` writes: the tools, and what the calls of each session gave. A
session is known by its trace, which the client begins (W3C `traceparent`) and PML passes on. A call that
nobody recorded, because it was foreseen wrongly, takes a time that is drawn for it, and gives nothing.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mcp_types as types
import orjson
import uvloop
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from benchmarks.end_to_end.clock import key_of
from benchmarks.end_to_end.times import drawn_s


def tool(told: dict[str, Any]) -> types.Tool:
    """One of the recorded tools."""
    reads = told["reads"]
    hints = types.ToolAnnotations(
        read_only_hint=reads, destructive_hint=not reads, idempotent_hint=reads, open_world_hint=False
    )
    schema = {"type": "object", **(told["input_schema"] or {})}
    return types.Tool(
        name=told["name"], description=told["description"], input_schema=schema, annotations=hints
    )


async def serve(recorded: Mapping[str, Any]) -> None:
    """Until standard input ends."""
    tools = [tool(each) for each in recorded["tools"]]

    async def list_tools(context: Any, parameters: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Any, parameters: types.CallToolRequestParams) -> types.CallToolResult:
        trace_id, key = _trace_id(context.meta), key_of(parameters.name, parameters.arguments or {})
        await asyncio.sleep(drawn_s(trace_id, key, recorded["median_s"]))
        session = recorded["results"].get(trace_id, {})
        return types.CallToolResult(content=[], structured_content=session.get(key.decode(), {}))

    server = Server("recorded", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def _trace_id(meta: Mapping[str, Any] | None) -> str:
    """Of the trace that a call belongs to; empty without one."""
    parts = str((meta or {}).get("traceparent", "")).split("-")
    return parts[1] if len(parts) > 1 else ""


if __name__ == "__main__":
    uvloop.run(serve(orjson.loads(Path(sys.argv[1]).read_bytes())))
