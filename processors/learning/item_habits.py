"""Where in a trace an item is called, how often, and for what requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.candidates import Probabilities, fitting
from pml.processors.learning.dot_products import dot_products
from pml.processors.learning.grouping import summed
from pml.processors.learning.traces import Prefixes, TraceSet, Vectors
from pml.processors.learning.vocabulary import UNKNOWN
from pml.processors.memory.embedding import unit

Column = NDArray[np.float64]

# So many calls that say nothing are added: half of one was the first, half of one the last.
_PRIOR = 2.0
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True, slots=True, eq=False)
class ItemHabits:
    """`counts`, `places`, `firsts`, `lasts` float64 [size]; `requests` float32 [size, dimensions].

    How often an item was called, its mean place in a trace from 0, the shares of its calls that were the
    first, and the last (of those after which is known what came), and the mean point of what was visible of
    the request (the origin: nothing was).
    """

    counts: Column
    places: Column
    firsts: Column
    lasts: Column
    requests: Vectors

    @classmethod
    def fit(cls, traces: TraceSet, size: int, texts: Vectors) -> ItemHabits:
        """Learn those of these traces; their `texts` name rows of `texts` [rows, dimensions]."""
        known = np.flatnonzero(traces.items != UNKNOWN)
        owners, items = traces.owners[known], traces.items[known].astype(np.int64)
        place = known - traces.offsets[owners]
        settled = np.ones(len(known)) if traces.settled is None else traces.settled[known]
        last = (known == traces.offsets[owners + 1] - 1) * settled
        weights = traces.weights[owners].astype(np.float64)
        counts, places, firsts, lasts, followed = (
            summed(each * weights, items, size)
            for each in (np.ones(len(known)), place, place == 0, last, settled)
        )
        told = traces.texts[known] >= 0
        requests = np.zeros((size, texts.shape[1]))
        np.add.at(requests, items[told], texts[traces.texts[known][told]] * weights[told][:, None])
        shared = (firsts + _PRIOR / 4) / (counts + _PRIOR), (lasts + _PRIOR / 4) / (followed + _PRIOR)
        return cls(counts, places / np.maximum(counts, _TINY), *shared, unit(requests.astype(np.float32)))

    def like(self, prefixes: Prefixes) -> Probabilities:
        """float64 [prefixes, size]: the cosine of the request and those that each item was called for."""
        if prefixes.texts is None:
            return np.zeros((len(prefixes), len(self.counts)))
        return dot_products(prefixes.texts, self.requests)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Its columns."""
        return {name: getattr(self, name) for name in ("counts", "places", "firsts", "lasts", "requests")}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> ItemHabits:
        """What `to_arrays` wrote.

        Raises:
            ValueError: an array is missing or does not fit: train the model again.
        """
        counts, places, firsts, lasts = (
            fitting(arrays, name, np.float64, 1) for name in ("counts", "places", "firsts", "lasts")
        )
        return cls(counts, places, firsts, lasts, fitting(arrays, "requests", np.float32, 2))
