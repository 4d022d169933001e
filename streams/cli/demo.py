"""`pml demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pml.streams.cli.exits import FAILED
from pml.streams.cli.output import Json, note, print_json, stderr_console, stdout_console
from pml.streams.cli.session import load_settings, run_async


def demo(
    repository: Annotated[
        Path,
        typer.Option("--repository", help="The git repository that the workflows read.", file_okay=False),
    ] = Path(),
    json: Json = False,
) -> None:
    """Run real workflows on real MCP servers, without and with speculation, and compare.

    Then programs: each is learned by running it once, and run again by nothing but its intent. Starts a stack
    of its own, stops it at the end and leaves its data. Exit code 1 where any result differs, an unsafe tool
    was run early, what was run early was of no use, or an intent was not understood.

    Examples: pml demo · pml demo --json · pml demo --repository ~/src/project
    """
    from pml.streams.demo.play import play
    from pml.streams.demo.programs import load_programs
    from pml.streams.demo.report import show
    from pml.streams.demo.stage import Stage, load_workflows
    from pml.streams.local.foreground import fetch_jars

    settings = load_settings()
    fetch_jars(settings)
    console = stderr_console()
    with console.status("starting …") as status:

        def say(text: str) -> None:
            status.update(text) if console.is_terminal else note(text)

        stage = Stage(settings, repository.absolute())
        report = run_async(play(stage, load_workflows(), load_programs(), say))
    if json:
        print_json(report.as_dict())
    else:
        show(report, stdout_console())
    if not report.ok:
        raise typer.Exit(FAILED)
