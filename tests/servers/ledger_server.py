"""An MCP server whose effects can be counted: `ledger_server.py LOG`.

`add` writes one line into the log, for ever; `look` and `read_slowly` only say that they were called. Each
line: {"tool", "name", "call_id", "speculative"}.
"""

from __future__ import annotations

import gc

gc.disable()  # it would take a sixth of the imports, and this process lives briefly

import asyncio
import json
import os
import sys
from pathlib import Path

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import ToolAnnotations

READS = ToolAnnotations(read_only_hint=True)
server = MCPServer("ledger")
log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def note(tool: str, name: str, context: Context) -> None:
    meta = dict(context.request_context.meta or {})
    line = {
        "tool": tool,
        "name": name,
        "call_id": meta.get("pml/call-id"),
        "speculative": bool(meta.get("pml/speculative")),
    }
    os.write(log, json.dumps(line).encode() + b"\n")


def noted() -> set[tuple[str, str]]:
    """Which tools were called, and for which names."""
    return {
        (line["tool"], line["name"]) for line in map(json.loads, Path(sys.argv[1]).read_text().splitlines())
    }


@server.tool(annotations=READS)
async def look(name: str, context: Context) -> dict[str, str]:
    """Answer at once."""
    note("look", name, context)
    return {"name": name, "seen": f"{name} was looked at"}


@server.tool(annotations=READS)
async def read_slowly(name: str, context: Context) -> dict[str, str]:
    """Answer after the time that a small request to a service takes."""
    note("read_slowly", name, context)
    await asyncio.sleep(0.08)
    return {"name": name, "text": f"the text of {name}"}


@server.tool()
async def add(name: str, context: Context) -> dict[str, str]:
    """An effect that cannot be taken back."""
    note("add", name, context)
    await asyncio.sleep(0.02)
    return {"name": name}


@server.tool(annotations=READS)
async def added(name: str, context: Context) -> dict[str, bool]:
    """Whether `add` had its effect for this name."""
    note("added", name, context)
    return {"added": ("add", name) in noted()}


@server.tool(annotations=READS)
async def hang(name: str, context: Context) -> dict[str, str]:
    """Never answer."""
    note("hang", name, context)
    await asyncio.Event().wait()
    return {"name": name}


@server.tool(annotations=READS)
async def flood(name: str, context: Context) -> dict[str, str]:
    """Answer with 100 MB."""
    note("flood", name, context)
    return {"name": "x" * 100_000_000}


@server.tool(annotations=READS)
async def die(name: str, context: Context) -> dict[str, str]:
    """Take the server along."""
    note("die", name, context)
    os._exit(3)


if __name__ == "__main__":
    server.run()
