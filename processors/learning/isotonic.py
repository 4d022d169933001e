"""A calibrator: what a score is worth as a probability, the higher the score the more.

Isotonic regression by pooling adjacent violators (Ayer et al. 1955; Zadrozny & Elkan 2002). A pool of few
that were all right is no proof of certainty: each pool is given one case more, of the mean rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.candidates import Candidates, fitting
from pml.processors.learning.compiled import compiled
from pml.processors.learning.grouping import summed
from pml.processors.learning.vocabulary import UNKNOWN

Column = NDArray[np.float64]

# Cases of the mean rate that every pool is given.
PRIOR_CASES = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Isotonic:
    """`scores` and `probabilities`, float64 [knots], ascending; between knots a line, beyond them level."""

    scores: Column
    probabilities: Column

    @classmethod
    def fit(cls, scores: Column, right: NDArray[np.bool_], weights: Column | None = None) -> Isotonic:
        """Learn from scores (float64 [n], finite), whether each was right (bool [n]), and weights (> 0).

        Raises:
            ValueError: there is nothing to learn from, a score is not finite, or the lengths differ.
        """
        given = np.ones(len(scores)) if weights is None else weights
        if len(scores) == 0 or len(scores) != len(right) or len(scores) != len(given):
            raise ValueError("a calibrator learns from scores, and a truth and a weight for each")
        if not np.all(np.isfinite(scores)) or not np.all(given > 0):
            raise ValueError("scores are finite and weights above 0")
        names, of = np.unique(scores, return_inverse=True)
        sizes = summed(given, of, len(names))
        rates = summed(given * right, of, len(names)) / sizes
        return _knots(names, rates, sizes, float(given @ right / given.sum()))

    def __call__(self, scores: Column) -> Column:
        """The probabilities of scores, of any shape."""
        return np.asarray(np.interp(scores, self.scores, self.probabilities), dtype=np.float64)

    def of(self, named: Candidates) -> Candidates:
        """Candidates as sure as they are right; 0 where nothing is named."""
        said = np.clip(self(named.probabilities), 0.0, 1.0)
        return Candidates(named.items, np.where(named.items == UNKNOWN, 0.0, said))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """`scores` and `probabilities`."""
        return {"scores": self.scores, "probabilities": self.probabilities}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Isotonic:
        """What `to_arrays` wrote.

        Raises:
            ValueError: an array is missing or does not fit: train the model again.
        """
        return cls(fitting(arrays, "scores", np.float64, 1), fitting(arrays, "probabilities", np.float64, 1))


def _knots(names: Column, rates: Column, sizes: Column, mean: float) -> Isotonic:
    """A knot for each pool, at its mean score, smoothed towards the mean rate, and made to rise again."""
    of = pooled(rates, sizes)
    count = int(of[-1]) + 1
    weights = summed(sizes, of, count)
    at = summed(sizes * names, of, count) / weights
    smoothed = (summed(sizes * rates, of, count) + PRIOR_CASES * mean) / (weights + PRIOR_CASES)
    again = pooled(smoothed, weights)
    count = int(again[-1]) + 1
    means = summed(weights * smoothed, again, count) / summed(weights, again, count)
    return Isotonic(at, means[again])


@compiled
def pooled(rates: Column, sizes: Column) -> NDArray[np.int64]:
    """The pool of each value, from 0 ascending: neighbours are pooled while the left one's mean is not less.

    Args:
        rates: float64 [n], in the order of their scores.
        sizes: float64 [n], what each weighs, above 0.
    """
    ends = np.zeros(len(rates), dtype=np.int64)
    means = np.zeros(len(rates))
    weights = np.zeros(len(rates))
    count = 0
    for place in range(len(rates)):
        ends[count], means[count], weights[count] = place + 1, rates[place], sizes[place]
        count += 1
        while count > 1 and means[count - 2] >= means[count - 1]:
            left, right = count - 2, count - 1
            weight = weights[left] + weights[right]
            means[left] = (means[left] * weights[left] + means[right] * weights[right]) / weight
            weights[left] = weight
            ends[left] = ends[right]
            count -= 1
    found = np.zeros(len(rates), dtype=np.int64)
    for pool in range(1, count):
        found[ends[pool - 1] : ends[pool]] = pool
    return found
