"""What is offered: the tools of other servers under their names, as the catalog has them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from mcp_types import Tool, ToolAnnotations

from pml.processors.speculation.guard import Refusal, grant
from pml.schemas.catalog import ServerTools
from pml.schemas.catalog import Tool as CatalogTool
from pml.schemas.permissions import PermissionFile
from pml.streams.mcp_server.proxy.names import proxied_names


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools at one moment.

    Attributes:
        listed: what clients see, by name; those that a person has to approve for each call are among them.
        tools: `server:name` of each name, also of those that are not listed.
        refusals: why a tool is not listed, by name.
    """

    listed: Mapping[str, Tool] = field(default_factory=dict)
    tools: Mapping[str, str] = field(default_factory=dict)
    refusals: Mapping[str, Refusal] = field(default_factory=dict)


def offer_of(
    servers: Mapping[str, ServerTools], permissions: PermissionFile, taken: Collection[str]
) -> Offer:
    """The offer of a catalog; names that are `taken` are not given to anybody."""
    known = {f"{name}:{tool.name}": tool for name, server in servers.items() for tool in server.tools}
    names = proxied_names(known, taken)
    refused = {tool: refusal_of(tool, servers, permissions) for tool in known}
    return Offer(
        listed={names[tool]: as_listed(names[tool], known[tool]) for tool in names if refused[tool] is None},
        tools={name: tool for tool, name in names.items()},
        refusals={names[tool]: why for tool, why in refused.items() if why is not None},
    )


def refusal_of(tool: str, servers: Mapping[str, ServerTools], permissions: PermissionFile) -> Refusal | None:
    """Why a tool may not be called; None where it may, or may once a person approves the call."""
    granted = grant(tool, {}, permissions, servers.get(tool.partition(":")[0]))
    return granted if isinstance(granted, Refusal) and granted.code == "TOOL_NOT_APPROVED" else None


def as_listed(name: str, tool: CatalogTool) -> Tool:
    """A tool as its own server lists it, under another name."""
    said = tool.hints.model_dump(exclude_none=True)
    hints = {key if key == "title" else f"{key}_hint": value for key, value in said.items()}
    return Tool(
        name=name,
        title=tool.title,
        description=tool.description or None,
        input_schema=tool.input_schema or {"type": "object"},
        output_schema=tool.output_schema,
        annotations=ToolAnnotations(**hints) if hints else None,
    )
