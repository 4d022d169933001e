"""What tools there are and what they may do, for `pml tools`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from pml.processors.speculation.guard import Refusal, can_speculate, grant
from pml.schemas.catalog import ServerTools, Tool
from pml.schemas.errors import BrokerRefused, BrokerUnavailable, ConfigurationError
from pml.schemas.identifiers import split_tool
from pml.schemas.permissions import PermissionFile
from pml.streams.bridge.permissions_file import permissions_hash, read_permissions
from pml.streams.bridge.reaper import Reaper
from pml.streams.bridge.server import Server, ServerOptions
from pml.streams.bridge.server_log import ServerLog
from pml.streams.bridge.servers_file import read_servers
from pml.streams.bridge.stdio import StdioOptions
from pml.streams.catalog_topic import Records, permissions_of, read_catalog, servers_of
from pml.streams.settings import Settings

# The bridge looks at the file every second or two; with a new server it starts again first.
PUBLISH_TIMEOUT_S = 20.0
POLL_S = 0.25


async def known_servers(settings: Settings) -> dict[str, ServerTools]:
    """The servers as the bridge published them; empty where no broker runs.

    Raises:
        BrokerRefused: one runs, and does not take us.
    """
    try:
        return servers_of(await read_catalog(settings))
    except BrokerRefused:
        raise
    except BrokerUnavailable:
        return {}


async def find_tool(settings: Settings, tool: str) -> tuple[ServerTools, Tool]:
    """A tool as the bridge listed it; a server that no bridge listed is started here for a moment.

    Raises:
        ConfigurationError: no such server is configured, it cannot be started, or it has no such tool.
    """
    name = split_tool(tool)[0]
    server = (await known_servers(settings)).get(name)
    if server is None or server.status != "listed":
        server = await list_server(settings, name)
    return server, _tool_of(server, tool)


async def configured_servers(settings: Settings) -> tuple[dict[str, ServerTools], dict[str, str]]:
    """All servers that are configured, and of those that cannot be asked, why.

    As the bridge listed them; one that it did not is started here for a moment.

    Raises:
        ConfigurationError: the file of servers is wrong.
    """
    known = await known_servers(settings)
    found: dict[str, ServerTools] = {}
    absent: dict[str, str] = {}
    for name in read_servers(settings.mcp_servers).enabled():
        try:
            listed = name in known and known[name].status == "listed"
            found[name] = known[name] if listed else await list_server(settings, name)
        except ConfigurationError as error:
            absent[name] = error.message
    return found, absent


async def list_server(settings: Settings, name: str, start_timeout_s: float | None = None) -> ServerTools:
    """Start a configured server, list its tools, end it.

    Raises:
        ConfigurationError: it is not configured, or it cannot be started.
    """
    specs = read_servers(settings.mcp_servers).enabled()
    if name not in specs:
        known = ", ".join(specs) or "none"
        raise ConfigurationError(
            f"no server {name!r} is configured in {settings.mcp_servers} (there: {known})"
        )
    reaper, server_log = Reaper(), ServerLog(settings.data_dir, name)
    stdio = StdioOptions(settings.bridge.result_max_bytes, server_log, reaper)
    options = ServerOptions(stdio, 1, start_timeout_s or settings.bridge.start_timeout_s, lambda record: None)
    server = Server(name, specs[name], options)
    try:
        record = await server.start()
    finally:
        await server.close()
        server_log.close()
        reaper.close()
    if record.status != "listed":
        own_words = f"; its own words are in {server_log.path}" if server_log.path.exists() else ""
        raise ConfigurationError(f"{record.error}{own_words}")
    return record


async def wait_published(settings: Settings, tool: str) -> bool:
    """Wait until the bridge has published the permissions file as it is now, and the tool; whether it did."""
    wanted = permissions_hash(read_permissions(settings.mcp_permissions))
    try:
        async with asyncio.timeout(PUBLISH_TIMEOUT_S):
            while not _publishes(await read_catalog(settings), wanted, split_tool(tool)[0]):
                await asyncio.sleep(POLL_S)
    except (TimeoutError, BrokerUnavailable):
        return False
    return True


def tool_rows(servers: Mapping[str, ServerTools], permissions: PermissionFile) -> list[dict[str, Any]]:
    """Each tool: where it is, whether it may run, whether it may run early, and why not."""
    return [
        row
        for name in sorted(servers)
        for row in (_rows(servers[name], permissions) if servers[name].tools else [_absent(servers[name])])
    ]


def _rows(server: ServerTools, permissions: PermissionFile) -> Iterator[dict[str, Any]]:
    for tool in server.tools:
        name = f"{server.server}:{tool.name}"
        found = permissions.find(name)
        granted = grant(name, {}, permissions, server)
        early = can_speculate(name, {}, permissions, server)
        yield {
            "tool": name,
            "server": server.server,
            "status": server.status,
            "allowed": not isinstance(granted, Refusal),
            "asks_person": isinstance(granted, Refusal) and granted.asks_person,
            "speculable": early.allowed,
            "why": granted.message if isinstance(granted, Refusal) else early.reason,
            "entry": found[0] if found else None,
            "scope": found[1].scope if found else None,
            "approval": found[1].approval if found else None,
            "effect": None if isinstance(granted, Refusal) else granted.effect,
            "hints": tool.hints.model_dump(exclude_none=True),
            "description": tool.description,
            "definition": tool.definition,
        }


def _absent(server: ServerTools) -> dict[str, Any]:
    why = server.error or "it has no tools"
    unknown = dict.fromkeys(("entry", "scope", "approval", "effect", "description", "definition"))
    return {
        "tool": None,
        "server": server.server,
        "status": server.status,
        "allowed": False,
        "asks_person": False,
        "speculable": False,
        "why": why,
        "hints": {},
        **unknown,
    }


def _publishes(records: Records, wanted: str, server: str) -> bool:
    permissions, servers = permissions_of(records), servers_of(records)
    return permissions is not None and permissions.hash == wanted and (server in servers or "*" in server)


def _tool_of(server: ServerTools, tool: str) -> Tool:
    name = split_tool(tool)[1]
    names = [item.name for item in server.tools]
    if name in names:
        return server.tools[names.index(name)]
    near = get_close_matches(name, names, 3, 0.4) or names[:10]
    raise ConfigurationError(f"{server.server} has no tool {name!r}; it has {', '.join(near) or 'none'}")
