"""`pml speculation on|off`: the switch."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from pml.streams.cli.output import Json, note, print_json
from pml.streams.cli.session import load_settings, run_async

app = typer.Typer(no_args_is_help=True, help="Switch speculation on and off everywhere.")
Principal = Annotated[str, typer.Option("--as", help="Who says so; written into the record.")]


@app.callback()
def _group() -> None:
    """Switch speculation on and off everywhere."""


@app.command()
def on(principal: Principal = "local", json: Json = False) -> None:
    """Allow speculation again, everywhere, within two seconds.

    Example: pml speculation on
    """
    _switch("on", principal, as_json=json)


@app.command()
def off(principal: Principal = "local", json: Json = False) -> None:
    """Stop speculation everywhere within two seconds: nothing new is started or served.

    Example: pml speculation off
    """
    _switch("off", principal, as_json=json)


@app.command()
def status(json: Json = False) -> None:
    """Show whether speculation is on: the switch, and the settings of this machine.

    Example: pml speculation status --json
    """
    from pml.streams.catalog_topic import read_catalog, switch_of

    settings = load_settings()
    switch = switch_of(run_async(read_catalog(settings)))
    configured = settings.speculation
    if json:
        print_json({"switch": switch.mode, "mode": configured.mode, "budget": configured.budget})
    else:
        typer.echo(f"switch {switch.mode}, mode {configured.mode}, budget {configured.budget}")


def _switch(mode: Literal["on", "off"], principal: str, *, as_json: bool) -> None:
    from pml.streams.catalog_topic import publish_switch

    run_async(publish_switch(load_settings(), mode, principal))
    note(f"speculation is {mode}")
    if as_json:
        print_json({"switch": mode})
