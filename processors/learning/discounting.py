"""What came after the last items, all lengths mixed by absolute discounting (Ney, Essen & Kneser 1994).

Every count gives up to D of itself to the shorter context; D is estimated for each length from the counts
of one and two. The start of a trace is an item of contexts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.candidates import Probabilities, fitting
from pml.processors.learning.contexts import UNSEEN, ContextCounts, Level, count_contexts
from pml.processors.learning.traces import Prefixes, TraceSet
from pml.processors.learning.vocabulary import UNKNOWN

ORDER = 4
# Where there are no counts of one or two to estimate it from.
DISCOUNT = 0.5
# An estimate of 1 would leave nothing to what was seen once, one of 0 nothing to what was not.
DISCOUNT_LEAST, DISCOUNT_MOST = 0.1, 0.9


@dataclass(frozen=True, slots=True, eq=False)
class _Mixed:
    """Of one context length: what each item keeps, and what the shorter context gets (of each context)."""

    kept: NDArray[np.float64]
    given: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Discounting:
    """Counts after the last items, and `discounts` float64 [order + 1]."""

    counts: ContextCounts
    discounts: NDArray[np.float64]
    _mixed: tuple[_Mixed, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        pairs = zip(self.counts.levels, self.discounts.tolist(), strict=True)
        object.__setattr__(self, "_mixed", tuple(_mixed(level, discount) for level, discount in pairs))

    @classmethod
    def fit(cls, traces: TraceSet, size: int, order: int = ORDER) -> Discounting:
        """Learn from contexts of up to `order` items."""
        counts = count_contexts(traces, size, order, begins=True)
        return cls(counts, np.array([_discount(level.counts) for level in counts.levels]))

    @property
    def size(self) -> int:
        """That of its vocabulary."""
        return self.counts.size

    def probabilities(self, prefixes: Prefixes) -> Probabilities:
        """float64 [prefixes, size]; every known item has more than 0, also one that was never called."""
        found = np.full((len(prefixes), self.size), 1 / max(1, self.size - 1))
        found[:, UNKNOWN] = 0
        for (level, contexts), mixed in zip(self.counts.contexts(prefixes), self._mixed, strict=True):
            rows = np.flatnonzero(contexts != UNSEEN)
            if len(rows):
                found[rows] *= mixed.given[contexts[rows], None]
                of, places = level.after(contexts[rows])
                found[rows[of], level.items[places]] += mixed.kept[places]
        return found

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Those of the counts, and `discounts`."""
        return self.counts.to_arrays() | {"discounts": self.discounts}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Discounting:
        """What `to_arrays` wrote.

        Raises:
            ValueError: an array is missing or does not fit: train the model again.
        """
        return cls(ContextCounts.from_arrays(arrays), fitting(arrays, "discounts", np.float64, 1))


def _discount(counts: NDArray[np.float64]) -> float:
    """The leaving-one-out estimate n1 / (n1 + 2 n2); counts of weights count as the nearest whole number."""
    whole = np.rint(counts)
    once, twice = int(np.sum(whole == 1)), int(np.sum(whole == 2))
    if once == 0 or twice == 0:
        return DISCOUNT
    return float(np.clip(once / (once + 2 * twice), DISCOUNT_LEAST, DISCOUNT_MOST))


def _mixed(level: Level, discount: float) -> _Mixed:
    taken = np.minimum(level.counts, discount)
    totals = level.sums(level.counts)
    return _Mixed((level.counts - taken) / totals[level.owners], level.sums(taken) / totals)
