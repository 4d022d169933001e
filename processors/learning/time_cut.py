"""Where the late side of a split by time begins."""

from __future__ import annotations

from math import ceil


def first_late(count: int, late_share: float) -> int:
    """The place of the first late one among so many, at least 1, that are in the order of their times."""
    return min(count - 1, ceil(count * (1 - late_share)))
