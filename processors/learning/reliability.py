"""Whether confidences are how often it is right: curve, Brier score, expected error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.float64]

BINS = 10


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """Equal bins of confidence from 0 to 1, those without any left out.

    `counts` int64, `confidences` and `rates` float64: how many, what was said, how often it was right.
    """

    counts: NDArray[np.int64]
    confidences: Column
    rates: Column

    @property
    def expected_error(self) -> float:
        """The mean of |said − right| over the bins, each by its count (Naeini et al. 2015); 0 of nothing."""
        total = self.counts.sum()
        return float(self.counts @ np.abs(self.confidences - self.rates) / total) if total else 0.0


def reliability(confidences: Column, right: NDArray[np.bool_], bins: int = BINS) -> Reliability:
    """The curve of confidences (float64 [n], 0 to 1) and whether each was right (bool [n]).

    Raises:
        ValueError: a confidence is not within 0 and 1, there is not a truth for each, or no bin.
    """
    _check(confidences, right)
    if bins < 1:
        raise ValueError("a curve has at least one bin")
    of = np.minimum((confidences * bins).astype(np.int64), bins - 1)
    counts = np.bincount(of, minlength=bins)
    held = counts > 0
    said = np.bincount(of, confidences, minlength=bins)[held] / counts[held]
    rates = np.bincount(of, right, minlength=bins)[held] / counts[held]
    return Reliability(counts[held], said, rates)


def brier(confidences: Column, right: NDArray[np.bool_]) -> float:
    """The mean squared error of confidences, 0 to 1 (Brier 1950, of one class); 0 of nothing.

    Raises:
        ValueError: a confidence is not within 0 and 1, or there is not a truth for each.
    """
    _check(confidences, right)
    return float(np.mean((confidences - right) ** 2)) if len(right) else 0.0


def _check(confidences: Column, right: NDArray[np.bool_]) -> None:
    if len(confidences) != len(right):
        raise ValueError(f"{len(confidences)} confidences for {len(right)} truths")
    if not np.all((confidences >= 0) & (confidences <= 1)):
        raise ValueError("a confidence lies within 0 and 1")
