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
            held: dict[str, Any] = orjson.loads(stream.read() or b"{}")
            found = change(held)
            stream.truncate(0)
            stream.write(orjson.dumps(held, option=orjson.OPT_INDENT_2))
            stream.flush()
            os.fsync(stream.fileno())
            return found
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise ConfigurationError(f"{file} cannot be read and written: {error}") from None
