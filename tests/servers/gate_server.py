"""An MCP server with one tool, which answers once somebody has made a file: `gate_server.py FOLDER`."""

from __future__ import annotations

import gc

gc.disable()  # it would take a sixth of the imports, and this process lives briefly

import asyncio
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

FOLDER = Path(sys.argv[1])
POLL_S = 0.02
server = MCPServer("gate")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def wait_for_file(name: str) -> str:
    """Answer once there is a file of that name."""
    while not (FOLDER / name).exists():
        await asyncio.sleep(POLL_S)
    return name


if __name__ == "__main__":
    server.run("stdio")
