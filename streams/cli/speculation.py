"""`pml speculation on|shadow|off`: the switch."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from pml.streams.cli.output import Json, note, print_json, say
from pml.streams.cli.session import load_settings, person, run_async

app = typer.Typer(no_args_is_help=True, help="Switch speculation on and off, everywhere or for some calls.")
Principal = Annotated[
    str | None, typer.Option("--as", help="Who says so, written into the record; else whoever is logged in.")
]
Tenant = Annotated[str | None, typer.Option("--tenant", help="For the calls of one tenant only.")]
Server = Annotated[str | None, typer.Option("--server", help="For the calls of one MCP server only.")]
Tool = Annotated[str | None, typer.Option("--tool", help="For one tool only: SERVER:NAME.")]


@app.callback()
def _group() -> None:
    """Switch speculation on and off, everywhere or for some calls."""


@app.command()
def on(
    tenant: Tenant = None,
    server: Server = None,
    tool: Tool = None,
    principal: Principal = None,
    json: Json = False,
) -> None:
    """Allow speculation again within two seconds. Of several switches that fit a call, the strictest holds.

    Example: pml speculation on
    """
    _switch("on", principal, _scope(tenant, server, tool), as_json=json)


@app.command()
def shadow(
    tenant: Tenant = None,
    server: Server = None,
    tool: Tool = None,
    principal: Principal = None,
    json: Json = False,
) -> None:
    """Plan and account for speculation, but call nothing early: `pml metrics` tells what it would have done.

    Example: pml speculation shadow --server git
    """
    _switch("shadow", principal, _scope(tenant, server, tool), as_json=json)


@app.command()
def off(
    tenant: Tenant = None,
    server: Server = None,
    tool: Tool = None,
    principal: Principal = None,
    json: Json = False,
) -> None:
    """Stop speculation within two seconds: nothing new is started or served.

    Examples: pml speculation off · pml speculation off --tool git:git_log
    """
    _switch("off", principal, _scope(tenant, server, tool), as_json=json)


@app.command()
def status(json: Json = False) -> None:
    """Show how far speculation may go: the switches, and the settings of this machine.

    Example: pml speculation status --json
    """
    from pml.streams.catalog_topic import SWITCH_ID, read_catalog, switches_of

    settings = load_settings()
    scopes = {scope: data.mode for scope, data in switches_of(run_async(read_catalog(settings))).items()}
    switch = scopes.pop(SWITCH_ID, "on")
    configured = settings.speculation
    if json:
        told = {"switch": switch, "scopes": scopes}
        print_json({**told, "mode": configured.mode, "budget": configured.budget, "depth": configured.depth})
        return
    typer.echo(
        f"switch {switch}, mode {configured.mode}, budget {configured.budget}, depth {configured.depth}"
    )
    for scope, mode in sorted(scopes.items()):
        say(f"{scope}: {mode}")


def _scope(tenant: str | None, server: str | None, tool: str | None) -> str | None:
    """The record's id for what was asked; None for everything."""
    named = {"tenant": tenant, "server": server, "tool": tool}
    given = [f"{kind}={name}" for kind, name in named.items() if name is not None]
    if len(given) > 1:
        raise typer.BadParameter("give one of --tenant, --server and --tool")
    return given[0] if given else None


def _switch(
    mode: Literal["on", "shadow", "off"], principal: str | None, scope: str | None, *, as_json: bool
) -> None:
    from pml.streams.catalog_topic import SWITCH_ID, publish_switch

    run_async(publish_switch(load_settings(), mode, principal or person(), scope or SWITCH_ID))
    note(f"speculation is {mode}" + (f" for {scope}" if scope else ""))
    if as_json:
        print_json({"switch": mode, "scope": scope})
