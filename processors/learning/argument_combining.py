"""From values of single parameters to whole sets of arguments, and how sure it is that all are right."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pml.processors.discovery.fitting import SHRINKAGE, descended
from pml.processors.learning.argument_choice import logit
from pml.processors.learning.candidates import fitting
from pml.processors.learning.grouping import summed
from pml.processors.learning.isotonic import Isotonic

# Calls of the mean rate that each tool is given.
STRENGTH: Final = 3.0
CURVE_CALLS_LEAST: Final = 20
# What a value's share counts for at least, so that one that was left out decides nothing by itself.
LEAST_SHARE: Final = 1e-3

Column = NDArray[np.float64]
Picks = tuple[int, ...]


def combinations(shares: Sequence[Sequence[float]], most: int) -> list[tuple[float, Picks]]:
    """The likeliest picks of one value for each parameter, the best first: log of the product, and places.

    Args:
        shares: for each parameter the probabilities of its values, descending, at least one, above 0.
        most: how many.
    """
    logs = [np.log(np.maximum(each, LEAST_SHARE)).tolist() for each in shares]
    first: Picks = (0,) * len(logs)
    waiting, known = [(-sum(each[0] for each in logs), first)], {first}
    found: list[tuple[float, Picks]] = []
    while waiting and len(found) < most:
        cost, picks = heapq.heappop(waiting)
        found.append((-cost, picks))
        for place, pick in enumerate(picks):
            after = (*picks[:place], pick + 1, *picks[place + 1 :])
            if pick + 1 < len(logs[place]) and after not in known:
                known.add(after)
                heapq.heappush(waiting, (cost + logs[place][pick] - logs[place][pick + 1], after))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Confidence:
    """How often the best set of arguments was right altogether.

    `tools` maps each to (right, offered); `mean` is the rate of all; `weights` float64 [3] of the log of the
    product, the log odds of the tool's rate, and 1; `curve` makes a probability of the sum, at
    most `most`: that so many calls were right is no proof of certainty.
    """

    tools: Mapping[str, tuple[float, float]]
    mean: float
    weights: Column
    curve: Isotonic | None
    most: float

    @classmethod
    def fit(
        cls, products: Column, tools: Sequence[str], right: NDArray[np.bool_], folds: NDArray[np.int64]
    ) -> Confidence:
        """Learn of calls, each [calls]; the rate of a call's tool is counted in other folds than its own."""
        names, of = np.unique(np.array(tools, dtype=np.str_), return_inverse=True)
        mean = float((right.sum() + 1) / (len(right) + 2))
        rates = _rates_elsewhere(of, right, folds, len(names), mean)
        given = np.column_stack((products, logit(rates), np.ones(len(right))))
        weights = _logistic(given, right)
        counted = {
            str(name): (float(right[of == number].sum()), float((of == number).sum()))
            for number, name in enumerate(names)
        }
        curve = Isotonic.fit(given @ weights, right) if len(right) >= CURVE_CALLS_LEAST else None
        return cls(counted, mean, weights, curve, (len(right) + 1) / (len(right) + 2))

    def __call__(self, product: float, tool: str) -> float:
        """That a set of arguments with this log of a product is right."""
        right, offered = self.tools.get(tool, (0.0, 0.0))
        rate = (right + STRENGTH * self.mean) / (offered + STRENGTH)
        score = np.array([product, float(logit(np.array([rate]))[0]), 1.0]) @ self.weights
        found = self.curve(np.array([score]))[0] if self.curve is not None else _curve(score)
        return min(self.most, float(found))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """`weights`, `bounds`, and the curve's arrays; tools are told apart."""
        own = {"weights": self.weights, "bounds": np.array([self.mean, self.most])}
        return own | (self.curve.to_arrays() if self.curve is not None else {})

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], tools: Mapping[str, tuple[float, float]]
    ) -> Confidence:
        """What `to_arrays` wrote.

        Raises:
            ValueError: an array is missing or does not fit: train the model again.
        """
        bounds, weights = fitting(arrays, "bounds", np.float64, 1), fitting(arrays, "weights", np.float64, 1)
        if (len(bounds), len(weights)) != (2, 3):
            raise ValueError("the model's confidence has another shape than this version's: train it again")
        curve = Isotonic.from_arrays(arrays) if "scores" in arrays else None
        return cls(tools, float(bounds[0]), weights, curve, float(bounds[1]))


def _rates_elsewhere(
    of: NDArray[np.int64], right: NDArray[np.bool_], folds: NDArray[np.int64], count: int, mean: float
) -> Column:
    cell = of * (int(folds.max(initial=0)) + 1) + folds
    cells = count * (int(folds.max(initial=0)) + 1)
    hits = summed(right, of, count)[of] - summed(right, cell, cells)[cell]
    offered = np.bincount(of, minlength=count)[of] - np.bincount(cell, minlength=cells)[cell]
    return np.asarray((hits + STRENGTH * mean) / (offered + STRENGTH))


def _logistic(given: Column, right: NDArray[np.bool_]) -> Column:
    start = np.array([1.0, 0.0, 0.0])
    if not len(right):
        return start

    def slope(weights: Column) -> Column:
        error = _curve(given @ weights) - right
        return np.asarray(error @ given / len(right) + SHRINKAGE * (weights - start))

    return descended(start, slope)


def _curve(score: Any) -> Any:
    return 1 / (1 + np.exp(-np.clip(score, -50, 50)))
