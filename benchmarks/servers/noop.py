"""The smallest real MCP server: two tools that do nothing, one that may be repeated and one that may not.

python -m benchmarks.servers.noop
"""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations
from pydantic import BaseModel

READS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
WRITES = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
)


class Done(BaseModel):
    """The number of the call comes back."""

    number: int


def build() -> MCPServer:
    """The server with its tools."""
    server = MCPServer("noop")

    @server.tool(annotations=READS)
    async def read(number: int = 0) -> Done:
        """Do nothing; may be repeated and may run early."""
        return Done(number=number)

    @server.tool(annotations=WRITES)
    async def write(number: int = 0) -> Done:
        """Do nothing, and do it at most once."""
        return Done(number=number)

    return server


if __name__ == "__main__":
    build().run("stdio")
