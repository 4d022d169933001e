"""A linear logit over the features of candidates, fitted by gradient descent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pml.processors.discovery.fitting import SHRINKAGE, descended
from pml.processors.learning.candidates import fitting
from pml.processors.learning.softmax import NONE, shares

Column = NDArray[np.float64]
Given = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class LinearScorer:
    """float64 `means` and `deviations` [features], `weights` [features + 1], the last a bias."""

    means: Column
    deviations: Column
    weights: Column

    @classmethod
    def fit(cls, given: Given, named: NDArray[np.bool_], right: NDArray[np.int64]) -> LinearScorer:
        """Learn weights.

        Args:
            given: [prefixes, places, features], of candidates.
            named: bool [prefixes, places]: which places have a candidate.
            right: int64 [prefixes]: the place of what came, or `NONE`.
        """
        count = given.shape[2]
        known = given[named].astype(np.float64)
        means = known.mean(axis=0) if len(known) else np.zeros(count)
        deviations = np.maximum(known.std(axis=0), 1e-6) if len(known) else np.ones(count)
        rows = standardised(given, means, deviations)
        weights = descended(np.zeros(count + 1), lambda found: slope(found, rows, named, right))
        return cls(means, deviations, weights)

    def margins(self, given: Given) -> Column:
        """float64 [prefixes, places] of candidates' features."""
        rows = standardised(given, self.means, self.deviations)
        return np.asarray(rows @ self.weights.astype(np.float32), dtype=np.float64)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Its columns."""
        return {"means": self.means, "deviations": self.deviations, "weights": self.weights}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], features: int) -> LinearScorer:
        """What `to_arrays` wrote, of so many features.

        Raises:
            ValueError: an array is missing or does not fit, or features are others: train the model again.
        """
        own = [fitting(arrays, name, np.float64, 1) for name in ("means", "deviations", "weights")]
        if [len(each) for each in own] != [features, features, features + 1]:
            raise ValueError("the model knows other features than this version: train it again")
        return cls(*own)


def standardised(given: Given, means: Column, deviations: Column) -> NDArray[np.float32]:
    """float32, as the weights take them, with a column of ones for the bias."""
    found = np.ones((*given.shape[:2], given.shape[2] + 1), dtype=np.float32)
    found[:, :, :-1] = (given - means) / deviations
    return found


def slope(
    weights: Column, given: NDArray[np.float32], named: NDArray[np.bool_], right: NDArray[np.int64]
) -> Column:
    """float64 [features + 1]: the slope of the loss, where probability lies less where it should."""
    if len(right) == 0:
        return np.zeros(len(weights))
    error = shares((given @ weights.astype(np.float32)).astype(np.float64), named)
    hit = np.flatnonzero(right != NONE)
    error[hit, right[hit]] -= 1
    sums = error.astype(np.float32).ravel() @ given.reshape(-1, given.shape[2])
    return np.asarray(SHRINKAGE * weights + sums / len(right), dtype=np.float64)
