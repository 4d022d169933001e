"""How sure it is that all arguments of a call are right, learned of calls whose arguments were guessed.

A tool that was never seen without arguments, or was seen once, is another matter than one that was seen a
hundred times. Trees tell them apart where there are calls enough; better values never speak against a call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pml.processors.discovery.fitting import SHRINKAGE, descended
from pml.processors.learning.argument_choice import logit
from pml.processors.learning.argument_combining import LEAST_SHARE
from pml.processors.learning.boosted_trees import BoostedTrees, Growth
from pml.processors.learning.candidates import fitting
from pml.processors.learning.grouping import Places, summed
from pml.processors.learning.isotonic import Isotonic
from pml.processors.learning.softmax import NONE

# The lead of the only value that a parameter may have.
LEAD_MOST: Final = -log(LEAST_SHARE)
# Calls of the mean rate that each tool is given.
STRENGTH: Final = 3.0
CURVE_CALLS_LEAST: Final = 20
TREES_CALLS_LEAST: Final = 100
# Small trees of few calls. The product, the least share and lead, and the tool's rate only speak for a call.
GROWTH: Final = Growth(
    forests=1,
    rounds=100,
    rate=0.05,
    settings={
        "max_depth": 3,
        "min_child_weight": 3.0,
        "reg_lambda": 2.0,
        "subsample": 0.8,
        "colsample_bytree": 1.0,
        "monotone_constraints": "(1,1,0,0,1,1,0)",
    },
)
SAID: Final = 5
"""What is said of the values of a call."""
LOOKS: Final = SAID + 2
"""That, and what is known of its tool."""

Column = NDArray[np.float64]


def said_of(best: Column, ahead: Column, calls: Places, count: int) -> Column:
    """float64 [count, SAID]: what speaks for the values that each call would be given: the log of their
    product, the log of the least likely, how many there are (log), whether there are none, and the least lead
    of one over other values of its parameter.

    Args:
        best: float64 [parameters], the share of the value of each.
        ahead: float64 [parameters], its lead (`argument_picks`).
        calls: int64 [parameters], the call of each.
        count: calls.
    """
    logs, least, lead = np.log(np.maximum(best, LEAST_SHARE)), np.zeros(count), np.full(count, LEAD_MOST)
    np.minimum.at(least, calls, logs)
    np.minimum.at(lead, calls, ahead)
    many = np.bincount(calls, minlength=count)
    return np.column_stack((summed(logs, calls, count), least, np.log1p(many), many == 0, lead))


@dataclass(frozen=True, slots=True, eq=False)
class Confidence:
    """How often the best set of arguments was right altogether.

    `tools` maps each to (right, offered); `mean` is the rate of all. `weights` float64 [3] are of the log of
    the product, the log odds of the tool's rate, and 1, and `curve` makes a probability of their sum; `trees`
    take their place where there are any. At most `most`: that so many calls were right is no proof of
    certainty.
    """

    tools: Mapping[str, tuple[float, float]]
    mean: float
    most: float
    weights: Column
    curve: Isotonic | None
    trees: BoostedTrees | None

    @classmethod
    def fit(cls, said: Column, tools: Sequence[str], right: NDArray[np.bool_], folds: Places) -> Confidence:
        """Learn of calls; the rate of a call's tool is counted in other folds than its own.

        Args:
            said: float64 [calls, SAID], what is said of the values of each (`said_of`).
            tools: the tool of each.
            right: bool [calls], whether all its arguments were.
            folds: int64 [calls].
        """
        names, of = np.unique(np.array(tools, dtype=np.str_), return_inverse=True)
        mean = float((right.sum() + 1) / (len(right) + 2))
        looks = np.column_stack((said, _elsewhere(of, right, folds, len(names), mean)))
        counted = {
            str(name): (float(right[of == number].sum()), float((of == number).sum()))
            for number, name in enumerate(names)
        }
        line = _line(looks)
        weights = _logistic(line, right)
        curve = Isotonic.fit(line @ weights, right) if len(right) >= CURVE_CALLS_LEAST else None
        trees = _grown(looks, right) if len(right) >= TREES_CALLS_LEAST else None
        return cls(counted, mean, (len(right) + 1) / (len(right) + 2), weights, curve, trees)

    def __call__(self, said: Column, tool: str) -> float:
        """That a set of arguments is right; `said` float64 [SAID] is what `said_of` says of its call."""
        right, offered = self.tools.get(tool, (0.0, 0.0))
        rate = np.array([(right + STRENGTH * self.mean) / (offered + STRENGTH)])
        looks = np.array([[*said, float(logit(rate)[0]), np.log1p(offered)]])
        if self.trees is not None:
            found = _curve(self.trees.margins(looks[:, None])[0, 0])
        else:
            score = _line(looks) @ self.weights
            found = self.curve(score)[0] if self.curve is not None else _curve(score[0])
        return min(self.most, float(found))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """`weights`, `bounds`, and the arrays of the curve and the trees; tools are told apart."""
        own = {"weights": self.weights, "bounds": np.array([self.mean, self.most])}
        parts = [each.to_arrays() for each in (self.curve, self.trees) if each is not None]
        return own | {name: array for part in parts for name, array in part.items()}

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
        trees = BoostedTrees.from_arrays(arrays, LOOKS) if "tree_roots" in arrays else None
        return cls(tools, float(bounds[0]), float(bounds[1]), weights, curve, trees)


def _elsewhere(of: Places, right: NDArray[np.bool_], folds: Places, count: int, mean: float) -> Column:
    """float64 [calls, 2]: log odds of the tool's rate in other folds, and how many calls that is of (log)."""
    cell = of * (int(folds.max(initial=0)) + 1) + folds
    cells = count * (int(folds.max(initial=0)) + 1)
    hits = summed(right, of, count)[of] - summed(right, cell, cells)[cell]
    offered = np.bincount(of, minlength=count)[of] - np.bincount(cell, minlength=cells)[cell]
    return np.column_stack((logit((hits + STRENGTH * mean) / (offered + STRENGTH)), np.log1p(offered)))


def _line(looks: Column) -> Column:
    """float64 [calls, 3]: the log of the product, the log odds of the tool's rate, and 1."""
    return np.column_stack((looks[:, 0], looks[:, SAID], np.ones(len(looks))))


def _grown(looks: Column, right: NDArray[np.bool_]) -> BoostedTrees:
    """Each call is a question with one answer, which is right or not."""
    came = np.where(right, 0, NONE)
    return BoostedTrees.fit(looks[:, None], np.ones((len(looks), 1), dtype=np.bool_), came, 0, GROWTH)


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
