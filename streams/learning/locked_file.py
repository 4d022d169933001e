"""Small JSON files beside the models that several processes change, one after the other."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import orjson

from pml.schemas.errors import ConfigurationError

T = TypeVar("T")


def held(file: Path) -> dict[str, Any]:
    """The object in a file; nothing where there is no file.

    Raises:
        ConfigurationError: the file cannot be read.
    """
    try:
        with file.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH)
            return _object(stream.read())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{file} cannot be read: {error}") from None


def changed(file: Path, change: Callable[[dict[str, Any]], T]) -> T:
    """What `change` gives, after the file holds what it made of the object in it.

    Args:
        file: is made where it is not there, with its folder.

    Raises:
        ConfigurationError: the file cannot be read or written.
    """
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with file.open("a+b") as stream:
            # The lock ends with the file.
            fcntl.flock(stream, fcntl.LOCK_EX)
            stream.seek(0)
            told = _object(stream.read())
            found = change(told)
            stream.truncate(0)
            stream.write(orjson.dumps(told, option=orjson.OPT_INDENT_2))
            stream.flush()
            os.fsync(stream.fileno())
            return found
    except (OSError, ValueError, TypeError) as error:
        raise ConfigurationError(f"{file} cannot be read and written: {error}") from None


def _object(told: bytes) -> dict[str, Any]:
    found = orjson.loads(told or b"{}")
    if not isinstance(found, dict):
        raise ValueError("there is no object in it")
    return found
