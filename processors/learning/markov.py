"""What came after the last item, or after the last two: Markov chains that back off to shorter contexts.

A context that was seen keeps the share T / (n + T) for what never came after it (T kinds of items in n
counts; Witten & Bell 1991), and spreads it as the shorter context would (Katz 1987).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.candidates import Probabilities
from pml.processors.learning.contexts import UNSEEN, ContextCounts, Level, count_contexts
from pml.processors.learning.grouping import Places, summed
from pml.processors.learning.traces import Prefixes, TraceSet

# What is left of 1 by rounding alone.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Markov:
    """Counts after the last items, up to the order of `counts`."""

    counts: ContextCounts

    @classmethod
    def fit(cls, traces: TraceSet, size: int, order: int) -> Markov:
        """Learn a chain that looks at the last `order` items."""
        return cls(count_contexts(traces, size, order, begins=False))

    @property
    def size(self) -> int:
        """That of its vocabulary."""
        return self.counts.size

    def probabilities(self, prefixes: Prefixes) -> Probabilities:
        """float64 [prefixes, size]; what was never called has 0."""
        found = np.zeros((len(prefixes), self.size))
        for level, contexts in self.counts.contexts(prefixes):
            rows = np.flatnonzero(contexts != UNSEEN)
            if len(rows):
                found[rows] = _backed_off(found[rows], level, contexts[rows])
        return found

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Those of the counts."""
        return self.counts.to_arrays()

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Markov:
        """What `to_arrays` wrote.

        Raises:
            ValueError: an array is missing or does not fit: train the model again.
        """
        return cls(ContextCounts.from_arrays(arrays))


def _backed_off(shorter: Probabilities, level: Level, contexts: Places) -> Probabilities:
    """The probabilities in these contexts, given those in the ones that are an item shorter."""
    rows, places = level.after(contexts)
    items, counts = level.items[places], level.counts[places]
    totals = summed(counts, rows, len(contexts))
    kinds = np.bincount(rows, minlength=len(contexts))
    others = 1 - summed(shorter[rows, items], rows, len(contexts))
    # At the empty context, and where all that is known came after this one, nothing is kept.
    others = np.where(shorter.any(axis=1), others, 0.0)
    kept = np.where(others > _ROUNDING, kinds, 0)
    scale = kept / (totals + kept) / np.maximum(others, _ROUNDING)
    found = shorter * scale[:, None]
    found[rows, items] = counts / (totals + kept)[rows]
    return found
