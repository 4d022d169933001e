"""What an MCP client's configuration says to reach PML, instead of the servers that it names now. Pure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

ADDRESS = "http://127.0.0.1:PORT"


def over_stdio(shape: str, command: list[str], config: Path, choice: str = "proxy") -> dict[str, Any]:
    """For an agent on this machine.

    Args:
        shape: `mcpServers`, or `servers` as VS Code writes them.
        command: how `pml` is started here.
    """
    entry = {
        "command": command[0],
        "args": [*command[1:], "mcp", "--tools", choice],
        "env": {"PML_CONFIG": str(config)},
    }
    return {shape: {"pml": _typed(shape, "stdio") | entry}}


def over_http(shape: str, choice: str = "proxy") -> dict[str, Any]:
    """For an agent anywhere; the address is the one that `pml status` shows for `gateway`."""
    return {shape: {"pml": {"type": "http", "url": f"{ADDRESS}/mcp?tools={choice}"}}}


def _typed(shape: str, kind: str) -> dict[str, str]:
    return {"type": kind} if shape == "servers" else {}
