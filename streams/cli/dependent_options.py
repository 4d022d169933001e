"""Options that mean something only beside another one."""

from __future__ import annotations

import typer


def only_with(option: str, given: bool, **others: object) -> None:
    """Refuse what would be ignored; `others` are by the names of their options, None where not given.

    Raises:
        typer.BadParameter: one of them was given without `option`.
    """
    named = [f"--{name.replace('_', '-')}" for name, value in others.items() if value is not None]
    if named and not given:
        raise typer.BadParameter(f"{', '.join(named)}: only with {option}")
