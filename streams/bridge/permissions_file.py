"""`mcp-permissions.yaml` as the bridge reads, hashes and watches it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from pml.processors.workflow.verify_rule import flaws
from pml.schemas.canonical import NotJson, canonical_json
from pml.schemas.codec import explain
from pml.schemas.errors import ConfigurationError
from pml.schemas.permissions import PermissionFile
from pml.streams.bridge.servers_file import load_yaml

Stamp = tuple[int, int, int]


def read_permissions(path: Path) -> PermissionFile:
    """The permissions of a YAML or JSON file; a file that does not exist allows nothing.

    Raises:
        ConfigurationError: the file cannot be read or has a wrong shape.
    """
    if not path.exists():
        return PermissionFile()
    return checked_permissions(path, load_yaml(path))


def checked_permissions(path: Path, content: Any) -> PermissionFile:
    """The permissions in what a file holds.

    Raises:
        ConfigurationError: it has a wrong shape, a value that no argument can be, or a rule that cannot
            be used.
    """
    try:
        file = PermissionFile.model_validate(content)
    except ValidationError as error:
        raise ConfigurationError(f"{path}: {explain(error)}") from None
    _check_values(path, file)
    wrong = next(flaws(file), None)
    if wrong is not None:
        raise ConfigurationError(f"{path}: {wrong}")
    return file


def _check_values(path: Path, file: PermissionFile) -> None:
    """Arguments are JSON: a date would be published as a text, NaN as null, bytes could not be at all."""
    try:
        canonical_json(file.model_dump())
    except NotJson as error:
        raise ConfigurationError(
            f"{path} has a value that JSON does not have; write it as text: {error.message}"
        ) from None


def permissions_hash(file: PermissionFile) -> str:
    """sha256 of what the file says, whatever its comments and order."""
    return hashlib.sha256(orjson.dumps(file.model_dump(), option=orjson.OPT_SORT_KEYS)).hexdigest()


class PermissionsWatch:
    """Reads the file again when it changed on disk; one that became wrong leaves the last good one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp = _stamp(path)
        self.file = read_permissions(path)

    def changed(self) -> bool:
        """Whether the file says something else than before.

        Raises:
            ConfigurationError: it changed and is wrong now; said once for each change.
        """
        stamp = _stamp(self._path)
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        before, self.file = self.file, read_permissions(self._path)
        return before != self.file


def _stamp(path: Path) -> Stamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
