"""A real MCP server that gives recorded results, each after the time that its call takes.

    python -m benchmarks.servers.recorded FILE

FILE is what `benchmarks.end_to_end.live` writes: the tools, and for each call its result and its time. A call
that nobody recorded, because it was foreseen wrongly, takes a time that is drawn for it, and gives nothing.
Where FILE is replaced, what comes after that gets the results of the new one.
"""

from __future__ import annotations

import asyncio
import sys
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


class Recording:
    """What the file says now."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_of, self._told = (0, 0), dict[str, Any]()

    @property
    def told(self) -> dict[str, Any]:
        """Read again where another file took its place."""
        about = self._path.stat()
        found = (about.st_ino, about.st_mtime_ns)
        if found != self._read_of:
            self._read_of, self._told = found, orjson.loads(self._path.read_bytes())
        return self._told


async def serve(recording: Recording) -> None:
    """Until standard input ends."""
    recorded = recording.told
    tools = [tool(each) for each in recorded["tools"]]

    async def list_tools(context: Any, parameters: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Any, parameters: types.CallToolRequestParams) -> types.CallToolResult:
        key = key_of(parameters.name, parameters.arguments or {})
        await asyncio.sleep(drawn_s(recorded["seed"], key, recorded["median_s"]))
        given = recording.told["results"].get(key.decode(), {})
        return types.CallToolResult(content=[], structured_content=given)

    server = Server("recorded", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    uvloop.run(serve(Recording(Path(sys.argv[1]))))
