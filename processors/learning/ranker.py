"""The ranker: a linear logit over the features of a bounded union of candidates.

A softmax over the candidates of a prefix and "none of them" (which has 0), fitted by gradient descent. What
its weights are learned from is cross-fitted: the features of a training trace come from components that saw
no trace of its group, as those of a trace in serving do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pml.processors.discovery.fitting import SHRINKAGE, descended
from pml.processors.learning.candidates import Probabilities, fitting
from pml.processors.learning.components import Components
from pml.processors.learning.features import NAMES, Features, evidence, features, union
from pml.processors.learning.requests import Requests
from pml.processors.learning.splits import folds
from pml.processors.learning.traces import Prefixes, TraceSet, Vectors
from pml.processors.learning.vocabulary import UNKNOWN, Ids

Column = NDArray[np.float64]

INNER_FOLDS = 5
# Prefixes that weights are learned from, evenly from all.
TRAINED_MOST = 6_000
_ROWS_AT_ONCE = 256
_NONE = -1


@dataclass(frozen=True, slots=True, eq=False)
class Ranker:
    """Components, and float64 `means` and `deviations` [NAMES], `weights` [NAMES + 1], the last a bias."""

    components: Components
    means: Column
    deviations: Column
    weights: Column

    @classmethod
    def fit(cls, traces: TraceSet, points: Vectors, requests: Requests, seed: int) -> Ranker:
        """Learn components and weights.

        Args:
            traces: what to learn from; their `texts` name rows of `requests`.
            points: float32 [size, dimensions], the description of each item of the vocabulary.
            requests: what was visible.
            seed: of the inner folds.
        """
        cases = _cross_fitted(traces, points, requests, seed)
        named = cases.features[cases.items != UNKNOWN]
        means = named.mean(axis=0) if len(named) else np.zeros(len(NAMES))
        deviations = np.maximum(named.std(axis=0), 1e-6) if len(named) else np.ones(len(NAMES))
        given = standardised(cases.features, means, deviations)
        weights = descended(
            np.zeros(len(NAMES) + 1), lambda found: slope(found, given, cases.items != UNKNOWN, cases.right)
        )
        return cls(Components.fit(traces, points, requests.points), means, deviations, weights)

    def candidates(self, prefixes: Prefixes, requests: Requests) -> tuple[Ids, Probabilities]:
        """The candidates of each prefix, int32 [prefixes, places] and float64 likewise, unordered."""
        found = evidence(self.components, prefixes, requests)
        items = union(found)
        given = standardised(features(found, items), self.means, self.deviations)
        return items, shares(self.weights, given, items != UNKNOWN)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """`means`, `deviations`, `weights`, and the components' arrays."""
        own = {"means": self.means, "deviations": self.deviations, "weights": self.weights}
        return own | self.components.to_arrays()

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Ranker:
        """What `to_arrays` wrote.

        Raises:
            ValueError: an array is missing or does not fit, or features are others: train the model again.
        """
        own = [fitting(arrays, name, np.float64, 1) for name in ("means", "deviations", "weights")]
        if [len(each) for each in own] != [len(NAMES), len(NAMES), len(NAMES) + 1]:
            raise ValueError("the model knows other features than this version: train it again")
        return cls(Components.from_arrays(arrays), *own)


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A ranker with the texts that prefixes name: a `Predictor`."""

    ranker: Ranker
    requests: Requests

    @property
    def size(self) -> int:
        """That of its vocabulary."""
        return len(self.ranker.components.points)

    def probabilities(self, prefixes: Prefixes) -> Probabilities:
        """float64 [prefixes, size]; 0 of what is no candidate, and what none of them gets is left out."""
        items, given = self.ranker.candidates(prefixes, self.requests)
        found = np.zeros((len(prefixes), self.size))
        np.put_along_axis(found, items, given, axis=1)
        found[:, UNKNOWN] = 0
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Cases:
    """`items` int32 [prefixes, places], `features` of them, `right` int64: the place of what came, or −1."""

    items: Ids
    features: Features
    right: NDArray[np.int64]


def standardised(given: Features, means: Column, deviations: Column) -> NDArray[np.float32]:
    """float32, as the weights take them, with a column of ones for the bias."""
    found = np.ones((*given.shape[:2], given.shape[2] + 1), dtype=np.float32)
    found[:, :, :-1] = (given - means) / deviations
    return found


def shares(weights: Column, given: NDArray[np.float32], named: NDArray[np.bool_]) -> Probabilities:
    """float64 [prefixes, places]: softmax with a further candidate, "none", that has 0."""
    sums = np.where(named, given @ weights.astype(np.float32), -np.inf).astype(np.float64)
    most = np.maximum(sums.max(axis=1, keepdims=True, initial=-np.inf), 0.0)
    odds = np.exp(sums - most)
    return np.asarray(odds / (odds.sum(axis=1, keepdims=True) + np.exp(-most)))


def slope(
    weights: Column, given: NDArray[np.float32], named: NDArray[np.bool_], right: NDArray[np.int64]
) -> Column:
    """float64 [NAMES + 1]: the slope of the loss, where probability lies less where it should."""
    if len(right) == 0:
        return np.zeros(len(weights))
    error = shares(weights, given, named)
    hit = np.flatnonzero(right != _NONE)
    error[hit, right[hit]] -= 1
    sums = error.astype(np.float32).ravel() @ given.reshape(-1, given.shape[2])
    return np.asarray(SHRINKAGE * weights + sums / len(right), dtype=np.float64)


def _cross_fitted(traces: TraceSet, points: Vectors, requests: Requests, seed: int) -> _Cases:
    fold = folds(traces.groups, INNER_FOLDS, seed)
    asked = traces.positions()
    asked = asked[:: max(1, -(-len(asked) // TRAINED_MOST))]
    of = fold[traces.owners[asked]]
    found: list[_Cases] = []
    for held in range(INNER_FOLDS):
        seen = traces.selected(np.flatnonzero(fold != held))
        components = Components.fit(seen, points, requests.points)
        places = asked[of == held]
        starts = range(0, len(places), _ROWS_AT_ONCE)
        parts = (places[start : start + _ROWS_AT_ONCE] for start in starts)
        found += [_cases(components, traces, part, requests) for part in parts]
    return _joined(found)


def _cases(components: Components, traces: TraceSet, places: NDArray[np.int64], requests: Requests) -> _Cases:
    found = evidence(components, traces.prefixes(places), requests)
    items = union(found)
    right = (items == traces.items[places][:, None]) & (items != UNKNOWN)
    return _Cases(items, features(found, items), np.where(right.any(axis=1), right.argmax(axis=1), _NONE))


def _joined(found: list[_Cases]) -> _Cases:
    """One below the other, empty places behind."""
    most = max((each.items.shape[1] for each in found), default=1)
    count = sum(len(each.items) for each in found)
    items = np.full((count, most), UNKNOWN, dtype=np.int32)
    given = np.zeros((count, most, len(NAMES)))
    start = 0
    for each in found:
        end, places = start + len(each.items), each.items.shape[1]
        items[start:end, :places], given[start:end, :places] = each.items, each.features
        start = end
    rights = [each.right for each in found]
    return _Cases(items, given, np.concatenate(rights) if rights else np.zeros(0, dtype=np.int64))
