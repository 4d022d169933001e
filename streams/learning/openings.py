"""How often a test side was looked at: what is decided after a look makes the next one less honest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pml.streams.learning.locked_file import changed

FILE = "openings.json"


def count_opening(folder: Path, test_hash: str) -> int:
    """Note that a test side is about to be looked at; how often that happened by now.

    Args:
        folder: that of the models; is made where it is not there.
        test_hash: what is in that side.

    Raises:
        ConfigurationError: the file cannot be read or written.
    """

    def count(counts: dict[str, Any]) -> int:
        counts[test_hash] = int(counts.get(test_hash, 0)) + 1
        return int(counts[test_hash])

    return changed(folder / FILE, count)
