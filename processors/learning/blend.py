"""Trees and a line over the same features, weighed together: each is right where the other is not.

The weights are learned on answers that neither had seen, so they know how far each may be believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.boosted_trees import BoostedTrees, Growth
from pml.processors.learning.grouping import Places
from pml.processors.learning.linear_scorer import LinearScorer

Column = NDArray[np.float64]
Given = NDArray[np.floating[Any]]

# What serves is the mean of several forests: each of them drew its rows and features by chance.
FORESTS = Growth(forests=3, rounds=80, rate=0.1)
# One is enough to learn how far trees may be believed.
_TRIED = Growth(forests=1, rounds=FORESTS.rounds, rate=FORESTS.rate)
# Parts of the cases, each scored by who learned of the others.
PARTS = 3
_WEIGHTS = "blend."
_SCORERS = 2


@dataclass(frozen=True, slots=True, eq=False)
class Blend:
    """`weights` is a line over what `trees` and `line` say."""

    trees: BoostedTrees
    line: LinearScorer
    weights: LinearScorer

    @classmethod
    def fit(cls, given: Given, named: NDArray[np.bool_], right: Places, folds: Places, seed: int) -> Blend:
        """Learn both, and their weights by `PARTS` of the folds.

        Args:
            given: [prefixes, places, features], of candidates.
            named: bool [prefixes, places]: which places have a candidate.
            right: int64 [prefixes]: the place of what came, or `NONE`.
            folds: int64 [prefixes]: cases of one group have the same.
            seed: of the trees.
        """
        said = np.zeros((*named.shape, _SCORERS))
        for part in range(PARTS):
            held, others = folds % PARTS == part, folds % PARTS != part
            trees = BoostedTrees.fit(given[others], named[others], right[others], seed, _TRIED)
            line = LinearScorer.fit(given[others], named[others], right[others])
            said[held] = _said(trees, line, given[held])
        return cls(
            BoostedTrees.fit(given, named, right, seed, FORESTS),
            LinearScorer.fit(given, named, right),
            LinearScorer.fit(said, named, right),
        )

    def margins(self, given: Given) -> Column:
        """float64 [prefixes, places] of candidates' features."""
        return self.weights.margins(_said(self.trees, self.line, given))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Those of the trees and of the line, and `blend.means` and so on."""
        weights = {f"{_WEIGHTS}{name}": array for name, array in self.weights.to_arrays().items()}
        return self.trees.to_arrays() | self.line.to_arrays() | weights

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], features: int) -> Blend:
        """What `to_arrays` wrote, of so many features.

        Raises:
            ValueError: an array is missing or does not fit: train the model again.
        """
        weights = {
            name.removeprefix(_WEIGHTS): array for name, array in arrays.items() if name.startswith(_WEIGHTS)
        }
        return cls(
            BoostedTrees.from_arrays(arrays, features),
            LinearScorer.from_arrays(arrays, features),
            LinearScorer.from_arrays(weights, _SCORERS),
        )


def _said(trees: BoostedTrees, line: LinearScorer, given: Given) -> Column:
    """float64 [prefixes, places, 2]."""
    return np.stack((trees.margins(given), line.margins(given)), axis=2)
