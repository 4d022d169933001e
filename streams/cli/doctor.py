"""`pml doctor`."""

from __future__ import annotations

from dataclasses import asdict

import typer

from pml.streams.cli.exits import FAILED
from pml.streams.cli.output import Json, print_json, stdout_console
from pml.streams.cli.session import load_settings, run_async
from pml.streams.printable import printable


def doctor(json: Json = False) -> None:
    """Check each prerequisite and setting: green, grey (optional, not there), or red with what to do.

    Exit code 1 where one is red.

    Examples: pml doctor · pml doctor --json
    """
    from pml.streams.checks import run_checks

    checks = run_async(run_checks(load_settings()))
    good = all(check.good for check in checks)
    if json:
        print_json({"ok": good, "checks": [asdict(check) for check in checks]})
    else:
        console = stdout_console()
        for check in checks:
            found = "[green]✓[/green]" if check.used else "[bright_black]–[/bright_black]"
            sign = found if check.good else "[red]✗[/red]"
            console.print(f"{sign} [bold]{check.name}[/bold]", end="  ")
            told = check.detail + (f" → {check.remedy}" if check.remedy else "")
            console.print(printable(told), markup=False)
    if not good:
        raise typer.Exit(FAILED)
