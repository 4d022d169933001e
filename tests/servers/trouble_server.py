"""An MCP server that is slow, hangs, answers too much, dies, counts: `trouble_server.py LOG [PORT]`.

With a port it speaks streamable HTTP there, else stdio.

The log has one JSON line for each thing that happened: {"what", "call_id", "pid"}.
"""

from __future__ import annotations

import gc

gc.disable()  # it would take a sixth of the imports, and this process lives briefly

import asyncio
import json
import os
import sys
import time
from pathlib import Path

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ResourceLink, TextContent, ToolAnnotations

LOG = Path(sys.argv[1])
READS = ToolAnnotations(read_only_hint=True)
server = MCPServer("trouble")


def note(what: str, context: Context) -> None:
    meta = dict(context.request_context.meta or {})
    line = json.dumps({"what": what, "call_id": meta.get("pml/call-id"), "pid": os.getpid(), "meta": meta})
    with LOG.open("a") as file:
        file.write(line + "\n")


@server.tool(annotations=READS)
async def echo(text: str, context: Context) -> str:
    note("echo", context)
    return text


@server.tool(annotations=READS)
async def slow(seconds: float, context: Context) -> str:
    note("slow", context)
    try:
        await asyncio.sleep(seconds)
    except BaseException:
        note("slow cancelled", context)
        raise
    note("slow ended", context)
    return "at last"


@server.tool(annotations=READS)
async def hang(context: Context) -> str:
    """Blocks the whole process and never answers."""
    note("hang", context)
    time.sleep(3600)  # noqa: ASYNC251
    return "never"


@server.tool(annotations=READS)
async def big(size: int) -> str:
    return "x" * size


@server.tool(annotations=READS)
async def die(context: Context) -> str:
    note("die", context)
    os._exit(3)


@server.tool(annotations=ToolAnnotations(read_only_hint=False))
async def count(context: Context, seconds: float = 0.0) -> str:
    """The unsafe one: its effect is the line in the log."""
    note("count", context)
    await asyncio.sleep(seconds)
    note("count ended", context)
    return "counted"


@server.tool(annotations=READS)
async def fail(message: str) -> str:
    raise ToolError(message)


@server.tool(annotations=READS, structured_output=False)
async def kinds() -> list[object]:
    return [
        TextContent(type="text", text="words"),
        Image(data=b"\x89PNG", format="png").to_image_content(),
        ResourceLink(type="resource_link", uri="file:///notes.md", name="notes"),
    ]


if __name__ == "__main__":
    if len(sys.argv) > 2:
        server.run("streamable-http", port=int(sys.argv[2]))
    else:
        server.run("stdio")
