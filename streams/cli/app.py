"""The command tree, and how its errors are told."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from pml.streams.cli import (
    analyze,
    approvals,
    backtest,
    capability,
    config,
    demo,
    discover,
    dlq,
    doctor,
    events,
    export,
    init,
    mcp,
    memory,
    metrics,
    model,
    query,
    replay,
    run,
    schema,
    speculation,
    stack,
    store,
    submit,
    thresholds,
    token,
    tools,
    train,
    worker,
)
from pml.streams.cli.exits import INTERRUPTED, exit_code
from pml.streams.cli.output import note, print_json
from pml.streams.printable import printable


class Commands(TyperGroup):
    """Tells errors that a user may meet in one line on stderr, and as JSON where that was asked for."""

    def make_context(self, *arguments: Any, **named: Any) -> Any:
        try:
            return super().make_context(*arguments, **named)
        except typer.TyperException as mistake:
            _tell_mistake(mistake)
            raise

    def invoke(self, ctx: Any) -> Any:
        from pml.schemas.errors import PMLError

        try:
            return super().invoke(ctx)
        except typer.TyperException as mistake:
            _tell_mistake(mistake)
            raise
        except PMLError as error:
            note(f"pml: {error.message}")
            if "--json" in sys.argv:
                print_json({"error": error.as_dict()})
            raise typer.Exit(exit_code(error)) from None
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None


def _tell_mistake(mistake: typer.TyperException) -> None:
    """Tell, as JSON, what was typed wrongly; typer tells a person, with the usage of the command.

    What it quotes may come from an agent, and steers no terminal.
    """
    from typer._click.exceptions import ClickException

    from pml.schemas.errors import UsageError

    if not isinstance(mistake, ClickException):
        return
    if "--json" in sys.argv:
        print_json({"error": UsageError(mistake.format_message()).as_dict()})
    mistake.message = printable(mistake.message)


app = typer.Typer(
    name="pml",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="PML, the Procedural Memory Layer: runs the tool workflows of AI agents and speculates ahead.",
    epilog="First steps: pml up --detach · pml submit workflow.yaml --wait · pml run list · pml down",
)
RUNNING, WORKING, LOOKING, OPERATING = "The stack", "Workflows", "What happened", "Configuration"


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(version("procedural-memory-layer"))
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the release and exit.")
    ] = False,
) -> None:
    """PML, the Procedural Memory Layer: runs the tool workflows of AI agents and speculates ahead."""


COMMANDS: dict[str, tuple[Callable[..., None], ...]] = {
    RUNNING: (stack.up, stack.down, stack.status, doctor.doctor, worker.worker),
    WORKING: (submit.submit, discover.discover, demo.demo, analyze.analyze, mcp.mcp),
    LOOKING: (query.query, metrics.metrics, replay.replay, train.train, backtest.backtest),
    OPERATING: (config.config, init.init, store.migrate),
}
for panel, commands in COMMANDS.items():
    for command in commands:
        app.command(rich_help_panel=panel)(command)
for panel, name, group in (
    (WORKING, "run", run.app),
    (WORKING, "approvals", approvals.app),
    (WORKING, "capability", capability.app),
    (LOOKING, "events", events.app),
    (LOOKING, "export", export.app),
    (LOOKING, "memory", memory.app),
    (LOOKING, "model", model.app),
    (LOOKING, "dlq", dlq.app),
    (OPERATING, "tools", tools.app),
    (OPERATING, "token", token.app),
    (OPERATING, "speculation", speculation.app),
    (OPERATING, "thresholds", thresholds.app),
    (OPERATING, "schema", schema.app),
):
    app.add_typer(group, name=name, rich_help_panel=panel)
