"""`pml schema export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pml.streams.cli.output import Json, note, print_json

app = typer.Typer(no_args_is_help=True, help="JSON Schema of every message.")


@app.callback()
def _group() -> None:
    """JSON Schema of every message."""


@app.command()
def export(
    folder: Annotated[
        Path | None, typer.Argument(help="Where to write one file a message; without it: one document.")
    ] = None,
    json: Json = False,
) -> None:
    """Write the JSON Schema of commands, calls, outcomes, events, catalog records and workflows.

    Examples: pml schema export schemas/ · pml schema export > pml-schemas.json
    """
    from pml.schemas.errors import ConfigurationError
    from pml.schemas.export import export as export_to
    from pml.schemas.export import json_schemas

    if folder is None:
        print_json(json_schemas())
        return
    try:
        paths = export_to(folder)
    except OSError as error:
        raise ConfigurationError(f"{folder} cannot be written: {error.strerror}") from None
    note(f"{len(paths)} schemas in {folder}")
    if json:
        print_json({"folder": str(folder), "schemas": [path.stem for path in paths]})
