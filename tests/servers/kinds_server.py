"""An MCP server with an answer of every kind, and a list of tools that grows: `kinds_server.py [GROW]`.

Once the file GROW exists, the next call says that the tools have changed, and there is one more.
"""

from __future__ import annotations

import gc

gc.disable()  # it would take a sixth of the imports, and this process lives briefly

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError

GROW = Path(sys.argv[1]) if len(sys.argv) > 1 else None
OBJECT: dict[str, Any] = {"type": "object"}
PNG = "iVBORw0KGgo="
TEXT = types.TextContent(
    text="words é 😀",
    annotations=types.Annotations(audience=["user"], priority=0.5),
    _meta={"block": 1},
)
EVERY_KIND: list[Any] = [
    TEXT,
    types.ImageContent(data=PNG, mime_type="image/png"),
    types.AudioContent(data="UklGRg==", mime_type="audio/wav"),
    types.ResourceLink(uri="file:///notes.md", name="notes", description="what was said", size=12),
    types.EmbeddedResource(
        resource=types.TextResourceContents(uri="file:///a.txt", text="inside", mime_type="text/plain")
    ),
    types.EmbeddedResource(resource=types.BlobResourceContents(uri="file:///b.bin", blob="AAEC")),
]


def answer(**fields: Any) -> types.CallToolResult:
    return types.CallToolResult(**{"content": [], **fields})


def bad(arguments: dict[str, Any]) -> types.CallToolResult:
    raise MCPError(types.INVALID_PARAMS, "that is no colour", {"given": arguments})


ANSWERS: dict[str, Callable[[dict[str, Any]], types.CallToolResult]] = {
    "kinds": lambda arguments: answer(content=EVERY_KIND),
    "structure": lambda arguments: answer(
        content=[TEXT], structured_content={"none": None, "deep": [{"x": None}, 1.5]}, _meta={"took": 3}
    ),
    "bare": lambda arguments: answer(structured_content=[1, None, "three"]),
    "empty": lambda arguments: answer(),
    "fails": lambda arguments: answer(
        content=[*EVERY_KIND[:2], types.TextContent(text="and more")],
        structured_content={"errno": 2},
        is_error=True,
    ),
    "echo": lambda arguments: answer(structured_content={"given": arguments}),
    "bad": bad,
}
bus = InMemorySubscriptionBus()


async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
    names = [*ANSWERS, *(["grown"] if GROW is not None and GROW.exists() else [])]
    tools = [types.Tool(name=name, input_schema=OBJECT) for name in names]
    tools[0] = types.Tool(
        name=names[0],
        title="Every kind",
        description="One of each.",
        input_schema={**OBJECT, "properties": {"much": {"type": "boolean"}}},
        annotations=types.ToolAnnotations(title="Kinds", read_only_hint=True, open_world_hint=False),
    )
    tools[1] = tools[1].model_copy(update={"output_schema": {**OBJECT, "required": ["deep"]}})
    return types.ListToolsResult(tools=tools)


async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    if GROW is not None and GROW.exists():
        await bus.publish(ToolsListChanged())
        await context.session.send_notification(types.ToolListChangedNotification())
    return ANSWERS[params.name](params.arguments or {})


server: Server[Any] = Server(
    "kinds", on_list_tools=list_tools, on_call_tool=call_tool, on_subscriptions_listen=ListenHandler(bus)
)


async def main() -> None:
    options = server.create_initialization_options(NotificationOptions(tools_changed=True))
    async with stdio_server() as (read, write):
        await server.run(read, write, options)


if __name__ == "__main__":
    anyio.run(main)
