"""`pml config`."""

from __future__ import annotations

from typing import Any

from pml.streams.cli.output import Json, note, print_json, print_table
from pml.streams.cli.session import load_settings

MASK = "********"


def config(json: Json = False) -> None:
    """Print every setting in force and where it came from; secrets are masked.

    Examples: pml config · pml config --json
    """
    import os

    from pml.streams.settings import Settings
    from pml.streams.settings_sources import files, leaves, origins

    settings = load_settings()
    found = origins(Settings, os.environ)
    entries = {
        ".".join(path): {"value": _shown(value), "origin": found.get(path, "default")}
        for path, value in leaves(settings.model_dump())
    }
    if json:
        print_json(entries)
        return
    print_table(
        ("setting", "value", "from"), ((name, e["value"], e["origin"]) for name, e in entries.items())
    )
    note(f"read: {', '.join(map(str, files())) or 'no pml.toml'}")


def _shown(value: Any) -> Any:
    from pathlib import Path

    from pydantic import SecretStr

    if isinstance(value, SecretStr):
        return MASK
    return str(value) if isinstance(value, Path) else value
