"""How good candidates are for what really came next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.candidates import Candidates
from pml.processors.learning.vocabulary import UNKNOWN, Ids

Column = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Quality:
    """For each prefix, float64: whether the first candidate, and one of the first three, came;
    1 ÷ its rank, 0 where it was not named; and the squared error of the probabilities, 0 to 2.
    """

    hit_1: Column
    hit_3: Column
    reciprocal_rank: Column
    brier: Column

    def means(self) -> dict[str, float]:
        """hit@1, hit@3, MRR and Brier; zeros of nothing."""
        columns = {
            "hit_1": self.hit_1,
            "hit_3": self.hit_3,
            "mrr": self.reciprocal_rank,
            "brier": self.brier,
        }
        return {name: float(column.mean()) if len(column) else 0.0 for name, column in columns.items()}


def quality(named: Candidates, targets: Ids) -> Quality:
    """Compare candidates with int32 [prefixes] of what came; what is `UNKNOWN` nobody can name: a miss.

    The Brier score (Brier 1950, over all classes) takes what was not named to have the probability 0.

    Raises:
        ValueError: there are not as many targets as prefixes.
    """
    if named.items.shape[0] != len(targets):
        raise ValueError(f"{len(targets)} targets for {named.items.shape[0]} prefixes")
    right = (named.items == targets[:, None]) & (targets != UNKNOWN)[:, None]
    ranks = np.argmax(right, axis=1) + 1
    found = right.any(axis=1)
    reciprocal = np.where(found, 1 / ranks, 0.0)
    errors = np.sum((named.probabilities - right) ** 2, axis=1) + ~found
    return Quality((found & (ranks == 1)) * 1.0, (found & (ranks <= 3)) * 1.0, reciprocal, errors)
