"""Shares of candidates and of "none of them", which has 0."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.float64]

NONE = -1


def shares(margins: Column, named: NDArray[np.bool_]) -> Column:
    """float64 [prefixes, places]: softmax over the places that have a candidate, and "none" with 0."""
    sums = np.where(named, margins, -np.inf)
    most = np.maximum(sums.max(axis=1, keepdims=True, initial=-np.inf), 0.0)
    odds = np.exp(sums - most)
    return np.asarray(odds / (odds.sum(axis=1, keepdims=True) + np.exp(-most)), dtype=np.float64)
