"""What came next where a like request had come as far: nearest neighbours over text and last items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.candidates import Probabilities, best_first, fitting
from pml.processors.learning.dot_products import dot_products
from pml.processors.learning.grouping import Places
from pml.processors.learning.traces import Prefixes, TraceSet, Vectors
from pml.processors.learning.vocabulary import UNKNOWN, Ids

NEIGHBOURS = 32
# To the cosine of the texts (−1 to 1) is added, where the last item is the same, and where the last two are.
SAME_LAST, SAME_LAST_TWO = 0.5, 0.25
# Odds of a neighbour fall by e for so much less nearness.
WIDTH = 0.1
# The latest places that are kept: a prefix is compared with each.
PLACES_MOST = 50_000
_WINDOW = 2
_NOTHING = -1
# Nearness starts there, so that all of it is above 0.
_SHIFT = 2.0
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True, slots=True, eq=False)
class NearestIntents:
    """Places in past traces.

    `texts` float32 [rows, dimensions]: what was visible of past requests; `rows` int64 [places] into it;
    `pasts` int32 [places, 2]: the last items there, the latest first; `nexts` int32 [places]: what came
    next; `weights` float32 [places]: those of the traces; `size` of the vocabulary.
    """

    size: int
    texts: Vectors
    rows: Places
    pasts: Ids
    nexts: Ids
    weights: NDArray[np.float32]

    @classmethod
    def fit(cls, traces: TraceSet, size: int, texts: Vectors) -> NearestIntents:
        """Keep the places of these traces; their `texts` name rows of `texts` [rows, dimensions]."""
        owners = traces.owners
        asked = np.flatnonzero((traces.items != UNKNOWN) & (traces.weights[owners] > 0) & (traces.texts >= 0))
        asked = asked[np.argsort(traces.times_ms[owners[asked]], kind="stable")][-PLACES_MOST:]
        pasts = traces.prefixes(asked).windows(_WINDOW, start=size, none=_NOTHING)
        used, rows = np.unique(traces.texts[asked], return_inverse=True)
        weights = traces.weights[owners[asked]]
        return cls(size, texts[used], rows.astype(np.int64), pasts, traces.items[asked], weights)

    def probabilities(self, prefixes: Prefixes) -> Probabilities:
        """float64 [prefixes, size]: the neighbours' shares; zeros without a past or a text."""
        found = np.zeros((len(prefixes), self.size))
        if prefixes.texts is None or len(self.nexts) == 0 or len(prefixes) == 0:
            return found
        near = self._nearness(prefixes)
        places = np.zeros((len(near), min(NEIGHBOURS, near.shape[1])), dtype=np.int32)
        nearest = np.zeros(places.shape)
        best_first(near, places, nearest)
        votes = np.exp((nearest - nearest[:, :1]) / WIDTH) * self.weights[places] * (nearest > 0)
        rows = np.repeat(np.arange(len(near)), places.shape[1])
        np.add.at(found, (rows, self.nexts[places].ravel()), votes.ravel())
        told = np.any(prefixes.texts, axis=1, keepdims=True)
        return np.asarray(found * told / np.maximum(found.sum(axis=1, keepdims=True), _TINY))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Its columns, and `size` [1]."""
        columns = ("texts", "rows", "pasts", "nexts", "weights")
        return {"size": np.array([self.size])} | {name: getattr(self, name) for name in columns}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> NearestIntents:
        """What `to_arrays` wrote.

        Raises:
            ValueError: an array is missing or does not fit: train the model again.
        """
        return cls(
            int(fitting(arrays, "size", np.int64, 1)[0]),
            fitting(arrays, "texts", np.float32, 2),
            fitting(arrays, "rows", np.int64, 1),
            fitting(arrays, "pasts", np.int32, 2),
            fitting(arrays, "nexts", np.int32, 1),
            fitting(arrays, "weights", np.float32, 1),
        )

    def _nearness(self, prefixes: Prefixes) -> NDArray[np.float64]:
        """float64 [prefixes, places], above 0."""
        assert prefixes.texts is not None
        near = dot_products(prefixes.texts, self.texts)[:, self.rows]
        last = prefixes.windows(_WINDOW, start=self.size, none=_NOTHING)
        same = last[:, None, 0] == self.pasts[None, :, 0]
        near += SAME_LAST * same + _SHIFT
        near += SAME_LAST_TWO * (same & (last[:, None, 1] == self.pasts[None, :, 1]))
        return near
