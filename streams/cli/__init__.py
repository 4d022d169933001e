"""`pml`: the command line. Each noun has a module; what is heavy is imported inside the commands."""

from __future__ import annotations


def main() -> None:
    """The console script."""
    from pml.streams.cli.app import app

    app(prog_name="pml")
