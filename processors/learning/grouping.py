"""Sums over groups of values, and spans of places: what columns with owners need again and again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.float64]
Places = NDArray[np.int64]


def summed(values: NDArray[np.floating] | NDArray[np.bool_], of: Places, count: int) -> Column:
    """float64 [count]: values [n] summed by their group, int64 [n] below `count`."""
    found: Column = np.bincount(of, values, minlength=count).astype(np.float64)
    return found


def spans(starts: Places, lengths: Places) -> Places:
    """int64: the numbers from each start, so many, one span after another."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    found: Places = np.arange(total) + np.repeat(starts - (ends - lengths), lengths)
    return found
