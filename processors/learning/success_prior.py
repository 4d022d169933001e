"""What is called most in runs that go well comes next: popularity weighed by a smoothed success rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.candidates import Probabilities, fitting
from pml.processors.learning.grouping import summed
from pml.processors.learning.popularity import shares
from pml.processors.learning.traces import Prefixes, TraceSet

# An item that was never called has the success rate of all; this many traces weigh as much as that.
PRIOR_TRACES = 5.0
NO_RATE = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class SuccessPrior:
    """`rates` float64 [size]: how often a trace that calls the item ends well; `shares` as probabilities."""

    rates: NDArray[np.float64]
    shares: NDArray[np.float64]

    @classmethod
    def fit(cls, traces: TraceSet, size: int) -> SuccessPrior:
        """Learn the rates; each trace counts once for an item, however often it calls it."""
        rates = success_rates(traces, size)
        joint = shares(traces, traces.weights, size) * rates
        total = joint.sum()
        return cls(rates, joint / total if total > 0 else joint)

    @property
    def size(self) -> int:
        """That of its vocabulary."""
        return len(self.shares)

    def probabilities(self, prefixes: Prefixes) -> Probabilities:
        """float64 [prefixes, size]."""
        return np.tile(self.shares, (len(prefixes), 1))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """`rates` and `shares`."""
        return {"rates": self.rates, "shares": self.shares}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> SuccessPrior:
        """What `to_arrays` wrote.

        Raises:
            ValueError: an array is missing or does not fit: train the model again.
        """
        return cls(fitting(arrays, "rates", np.float64, 1), fitting(arrays, "shares", np.float64, 1))


def success_rates(traces: TraceSet, size: int) -> NDArray[np.float64]:
    """float64 [size]: the mean outcome of traces with each item, drawn to the mean of all (m-estimate)."""
    owners, items = np.divmod(np.unique(traces.owners * size + traces.items), size)
    weights = traces.weights.astype(np.float64)
    total = weights.sum()
    mean = float(weights @ traces.outcomes / total) if total > 0 else NO_RATE
    good = summed((weights * traces.outcomes)[owners], items, size)
    all_weights = summed(weights[owners], items, size)
    return (good + PRIOR_TRACES * mean) / (all_weights + PRIOR_TRACES)
