"""Which tools a client sees: PML's own, those of other servers, or both."""

from __future__ import annotations

from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from pml.streams.settings import ToolChoice

QUERY = "tools"
CHOICES: tuple[ToolChoice, ...] = ("proxy", "pml", "both")


def chosen(context: ServerRequestContext[Any, Any], default: ToolChoice) -> ToolChoice:
    """What the client's URL says (`/mcp?tools=proxy`), else the setting.

    Raises:
        MCPError: the URL says something else.
    """
    asked = getattr(context.request, "query_params", {}).get(QUERY, default)
    if asked not in CHOICES:
        raise MCPError(INVALID_PARAMS, f"?{QUERY}= is one of {', '.join(CHOICES)}, not {asked[:64]!r}")
    choice: ToolChoice = asked
    return choice
