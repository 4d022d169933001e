"""`pml tools list|draft|approve`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pml.streams.cli.output import Json, note, print_json, print_table, shortened
from pml.streams.cli.session import load_settings, run_async

if TYPE_CHECKING:
    from pml.streams.settings import Settings

app = typer.Typer(no_args_is_help=True, help="Tools of MCP servers, and what they may do.")


@app.callback()
def _group() -> None:
    """Tools of MCP servers, and what they may do."""


@app.command("list")
def list_tools(json: Json = False) -> None:
    """List the tools that the bridge found, whether they may run, and whether they may run early.

    One that `asks` runs where a person approves the single call (`pml approvals`).

    Examples: pml tools list · pml tools list --json
    """
    from pml.streams.bridge.permissions_file import read_permissions
    from pml.streams.catalog_topic import read_catalog, servers_of
    from pml.streams.tool_listing import tool_rows

    settings = load_settings()
    servers = servers_of(run_async(read_catalog(settings)))
    rows = tool_rows(servers, read_permissions(settings.mcp_permissions))
    if json:
        print_json(rows)
        return
    columns = ("tool", "may run", "early", "scope", "effect", "why not")
    print_table(columns, (_row(row) for row in rows))
    if any(server.status == "unavailable" for server in servers.values()):
        note("mcp-servers.yaml is read when a bridge starts: after a change, pml down and pml up --detach")


@app.command()
def draft(json: Json = False) -> None:
    """Propose permissions for tools that no entry names, from hints and names; everything commented out.

    Servers that no bridge listed are started for a moment.

    Examples: pml tools draft · pml tools draft >> mcp-permissions.draft.yaml
    """
    from pml.streams.bridge.permissions_file import read_permissions
    from pml.streams.permissions_draft import draft_text, proposals
    from pml.streams.tool_listing import configured_servers

    settings = load_settings()
    servers, absent = run_async(configured_servers(settings))
    found = proposals(servers, read_permissions(settings.mcp_permissions))
    if json:
        items = [{"tool": item.tool, "entry": item.entry, "reason": item.reason} for item in found]
        print_json({"items": items, "absent": absent})
    else:
        typer.echo(draft_text(found, absent), nl=False)


@app.command()
def approve(
    tool: Annotated[str, typer.Argument(metavar="SERVER:TOOL", help="A tool, or a glob such as 'git:*'.")],
    *,
    scope: Annotated[
        str | None, typer.Option(help="minimal or readonly may run early; else filesystem, network-api, …")
    ] = None,
    approval: Annotated[
        Literal["auto", "hil"], typer.Option(help="hil: a person decides each call.")
    ] = "auto",
    effect: Annotated[Literal["read", "write"] | None, typer.Option(help="What a call does.")] = None,
    touches: Annotated[
        list[str] | None, typer.Option(help="What it reads or changes, as 'files:{path}'; several times.")
    ] = None,
    ttl_s: Annotated[float | None, typer.Option("--ttl", help="Seconds an early result stays good.")] = None,
    cacheable: Annotated[bool | None, typer.Option(help="No: its answers change by themselves.")] = None,
    json: Json = False,
) -> None:
    """Allow a tool in mcp-permissions.yaml, for its definition as it is now.

    It runs early only where you say that it reads: --scope readonly (or minimal), or --effect read.

    Examples: pml tools approve git:git_log --scope readonly --touches 'git:{repo_path}' ·
    pml tools approve mail:send
    """
    from pml.streams.permissions_edit import approve as write_entry

    settings = load_settings()
    changes: dict[str, Any] = {
        "scope": scope,
        "approval": approval,
        "effect": effect,
        "touches": touches or None,
        "ttl_s": ttl_s,
        "cacheable": cacheable,
        "definition": _definition(settings, tool),
        "approved_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    given = {name: value for name, value in changes.items() if value is not None}
    entry = write_entry(settings.mcp_permissions, tool, given)
    _tell(settings, tool, entry, as_json=json)


def _definition(settings: Settings, tool: str) -> str | None:
    """The hash of the tool as it is now; a glob is approved for whatever it will match."""
    from pml.schemas.errors import ConfigurationError
    from pml.streams.tool_listing import find_tool

    if not all(tool.partition(":")):
        raise ConfigurationError(f"a tool is written SERVER:TOOL, not {tool!r}; `pml tools list` shows them")
    if re.search(r"[*?\[]", tool):
        return None
    return run_async(find_tool(settings, tool))[1].definition


def _tell(settings: Settings, tool: str, entry: dict[str, Any], *, as_json: bool) -> None:
    from pml.schemas.permissions import Permission
    from pml.streams.tool_listing import wait_published

    permission = Permission.model_validate(entry)
    early = permission.declared_effect == "read" and permission.approval == "auto" and permission.cacheable
    note(f"{tool}: {'may run, also early' if early else 'may run, not early'} ({settings.mcp_permissions})")
    in_force = run_async(wait_published(settings, tool))
    if not in_force:
        note("not in force yet: it is when a bridge reads the file (`pml up`)")
    if as_json:
        print_json({"tool": tool, "entry": entry, "in_force": in_force})


def _row(row: dict[str, Any]) -> tuple[Any, ...]:
    name = row["tool"] or f"{row['server']} ({row['status']})"
    may_run = "asks" if row["asks_person"] else row["allowed"]
    return name, may_run, row["speculable"], row["scope"], row["effect"], shortened(row["why"], 90)
