"""A linear logit over the features of candidates.

Fitted by Newton's method in a trust region (Moré & Sorensen 1983; scipy has it).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pml.processors.discovery.fitting import SHRINKAGE
from pml.processors.learning.candidates import fitting
from pml.processors.learning.softmax import NONE, shares

Column = NDArray[np.float64]
Given = NDArray[np.floating[Any]]
Singles = NDArray[np.float32]

# The loss is convex: from anywhere it settles in about ten steps.
STEPS_MOST = 100
SETTLED = 1e-4
"""How steep the loss may still be."""


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
        known = given[named]
        means = known.mean(axis=0, dtype=np.float64) if len(known) else np.zeros(count)
        deviations = known.std(axis=0, dtype=np.float64) if len(known) else np.ones(count)
        deviations = np.maximum(deviations, 1e-6)
        weights = Loss(standardised(known, means, deviations), named, right).least()
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


def standardised(given: Given, means: Column, deviations: Column) -> Singles:
    """float32 [..., features + 1], as the weights take them, with a column of ones for the bias."""
    found = np.ones((*given.shape[:-1], given.shape[-1] + 1), dtype=np.float32)
    found[..., :-1] = (given - means) / deviations
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Loss:
    """How unlikely what came is, a mean over the prefixes, by weights; and what grows with their squares.

    `rows` float32 [candidates, features + 1] are those of the places that are `named`, bool [prefixes,
    places]; `right` int64 [prefixes].
    """

    rows: Singles
    named: NDArray[np.bool_]
    right: NDArray[np.int64]

    def least(self) -> Column:
        """The weights that make it least."""
        start = np.zeros(self.rows.shape[1])
        if not self.named.any():
            return start
        # Imported where it is needed: who only predicts does not wait for it.
        from scipy.optimize import minimize

        given = {"jac": True, "hess": self.curvature, "method": "trust-exact"}
        options = {"gtol": SETTLED, "maxiter": STEPS_MOST}
        return np.asarray(minimize(self.sloped, start, **given, options=options).x)

    def sloped(self, weights: Column) -> tuple[float, Column]:
        """The loss, and its slope, float64 [features + 1]: probability lies less where it should."""
        error = self._shares(weights)
        hit = np.flatnonzero(self.right != NONE)
        came = 1 - error.sum(axis=1)
        came[hit] = error[hit, self.right[hit]]
        error[hit, self.right[hit]] -= 1
        unlikely = -np.log(np.maximum(came, np.finfo(np.float64).tiny)).mean()
        own, sums = SHRINKAGE * weights, error[self.named].astype(np.float32) @ self.rows
        return float(unlikely + own @ weights / 2), np.asarray(own + sums / len(self.right))

    def curvature(self, weights: Column) -> Column:
        """float64 [features + 1, features + 1]: of each prefix the spread of its candidates' rows."""
        # Imported where it is needed: who only predicts does not wait for it.
        from scipy.sparse import csr_array

        likely = self._shares(weights)[self.named].astype(np.float32)
        ends = np.concatenate(([0], np.cumsum(self.named.sum(axis=1))))
        means = csr_array((likely, np.arange(len(likely)), ends), (len(self.named), len(likely))) @ self.rows
        # Of a product with itself BLAS computes half.
        scaled = self.rows * np.sqrt(likely)[:, None]
        spread = (scaled.T @ scaled - means.T @ means).astype(np.float64)
        return np.asarray(spread / len(self.right) + SHRINKAGE * np.eye(len(weights)))

    def _shares(self, weights: Column) -> Column:
        margins = np.zeros(self.named.shape)
        margins[self.named] = self.rows @ weights.astype(np.float32)
        return shares(margins, self.named)
