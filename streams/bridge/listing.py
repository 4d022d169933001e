"""What a server says of its tools, as the catalog keeps it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import mcp_types as types
import orjson

from pml.schemas.catalog import ServerTools, Tool, ToolHints
from pml.streams.bridge.secret_values import NO_SECRETS, SecretValues
from pml.streams.bridge.server_specs import ServerSpec

ERROR_MAX_CHARACTERS = 500


def definition(tool: types.Tool) -> str:
    """sha256 of a tool's description and schemas, in canonical JSON: what an approval was given for."""
    parts = [tool.description or "", tool.input_schema, tool.output_schema]
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()


def without_secrets(tool: types.Tool, secrets: SecretValues) -> types.Tool:
    """A tool as every tenant may read it; what an approval is given for is this, so a new token ends none."""
    told = tool.model_dump(mode="json", by_alias=True, exclude={"name"}, exclude_unset=True)
    clean = secrets.taken_from_tool(told)
    return tool if clean == told else types.Tool.model_validate({**clean, "name": tool.name})


def catalog_tool(tool: types.Tool) -> Tool:
    """One tool with its hints; what the server leaves open stays None."""
    hints = tool.annotations or types.ToolAnnotations()
    return Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description or "",
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        hints=ToolHints(
            title=hints.title,
            read_only=hints.read_only_hint,
            destructive=hints.destructive_hint,
            idempotent=hints.idempotent_hint,
            open_world=hints.open_world_hint,
        ),
        definition=definition(tool),
    )


def listed(
    name: str,
    spec: ServerSpec,
    concurrency: int,
    tools: Iterable[types.Tool],
    secrets: SecretValues = NO_SECRETS,
) -> ServerTools:
    """The record of a server that listed its tools."""
    told = [catalog_tool(without_secrets(tool, secrets)) for tool in tools]
    return ServerTools(
        server=name,
        status="listed",
        trusted=spec.trusted,
        isolation=spec.isolation,
        concurrency=spec.concurrency or concurrency,
        tools=tuple(sorted(told, key=lambda tool: tool.name)),
    )


def unavailable(name: str, spec: ServerSpec, concurrency: int, error: str) -> ServerTools:
    """The record of a server that could not be started."""
    return ServerTools(
        server=name,
        status="unavailable",
        error=error[:ERROR_MAX_CHARACTERS],
        trusted=spec.trusted,
        isolation=spec.isolation,
        concurrency=spec.concurrency or concurrency,
    )
