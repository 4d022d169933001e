"""How often a test side was looked at: what is decided after a look makes the next one less honest."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import orjson

from pml.schemas.errors import ConfigurationError

FILE = "openings.json"


def count_opening(folder: Path, test_hash: str) -> int:
    """Note that a test side is about to be looked at; how often that happened by now.

    Args:
        folder: that of the models; is made where it is not there.
        test_hash: what is in that side.

    Raises:
        ConfigurationError: the file cannot be read or written.
    """
    file = folder / FILE
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with file.open("a+b") as stream:
            # Two trainings at once count one after the other; the lock ends with the file.
            fcntl.flock(stream, fcntl.LOCK_EX)
            stream.seek(0)
            counts: dict[str, int] = orjson.loads(stream.read() or b"{}")
            counts[test_hash] = counts.get(test_hash, 0) + 1
            stream.truncate(0)
            stream.write(orjson.dumps(counts, option=orjson.OPT_INDENT_2))
            stream.flush()
            os.fsync(stream.fileno())
            return counts[test_hash]
    except (OSError, ValueError, TypeError) as error:
        raise ConfigurationError(f"{file} cannot be read and written: {error}") from None
