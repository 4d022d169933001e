"""What is called most comes next, whatever came before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.candidates import Probabilities, fitting
from pml.processors.learning.grouping import summed
from pml.processors.learning.traces import Prefixes, TraceSet
from pml.processors.learning.vocabulary import UNKNOWN


@dataclass(frozen=True, slots=True, eq=False)
class Popularity:
    """`shares` float64 [size]: of all that was called, by the weight of the traces."""

    shares: NDArray[np.float64]

    @classmethod
    def fit(cls, traces: TraceSet, size: int) -> Popularity:
        """The shares of a vocabulary of this size; all 0 where there is nothing to learn from."""
        return cls(shares(traces, traces.weights, size))

    @property
    def size(self) -> int:
        """That of its vocabulary."""
        return len(self.shares)

    def probabilities(self, prefixes: Prefixes) -> Probabilities:
        """float64 [prefixes, size]."""
        return np.tile(self.shares, (len(prefixes), 1))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """`shares`."""
        return {"shares": self.shares}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Popularity:
        """What `to_arrays` wrote.

        Raises:
            ValueError: an array is missing or does not fit: train the model again.
        """
        return cls(fitting(arrays, "shares", np.float64, 1))


def called(traces: TraceSet, of_traces: NDArray[Any], size: int) -> NDArray[np.float64]:
    """float64 [size]: a value of each trace, summed over the calls of each item; 0 for `UNKNOWN`."""
    sums = summed(of_traces[traces.owners], traces.items.astype(np.int64), size)
    sums[UNKNOWN] = 0
    return sums


def shares(traces: TraceSet, of_traces: NDArray[Any], size: int) -> NDArray[np.float64]:
    """float64 [size]: `called`, as shares of the sum; zeros where that is 0."""
    sums = called(traces, of_traces, size)
    total = sums.sum()
    return sums / total if total > 0 else sums
