"""Programs as a user names them on the command line."""

from __future__ import annotations

from pathlib import Path

from pml.schemas.errors import ConfigurationError
from pml.schemas.structure import Language

SUFFIXES: dict[str, Language] = {
    ".py": "python",
    ".ts": "typescript",
    ".mts": "typescript",
    ".js": "typescript",
    ".mjs": "typescript",
}
_NAMES: dict[str, Language] = {"python": "python", "typescript": "typescript"}


def language_of(file: str, named: str | None) -> Language | None:
    """The language of a program: as it is named, else by the file's suffix; None where that says none.

    Raises:
        ConfigurationError: there is no language of that name.
    """
    if named is None:
        return SUFFIXES.get(Path(file).suffix)
    if named not in _NAMES:
        raise ConfigurationError(f"--language is python or typescript, not {named!r}")
    return _NAMES[named]
