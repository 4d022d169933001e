"""What past traces of a like request called at all, ended with, and had left where as much was called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.candidates import Probabilities, best_first, fitting
from pml.processors.learning.compiled import compiled
from pml.processors.learning.dot_products import dot_products
from pml.processors.learning.grouping import Places, spans
from pml.processors.learning.traces import Prefixes, TraceSet, Vectors
from pml.processors.learning.vocabulary import UNKNOWN, Ids

Column = NDArray[np.float64]

NEIGHBOURS = 24
# The vote of a neighbour falls by e for so much less cosine.
WIDTH = 0.1
# The latest traces that are kept, and items of each.
TRACES_MOST, ITEMS_MOST = 10_000, 256
HISTORY = 16
# The vote of a neighbour that called nothing of the history, beside one that called all of it (1 + this).
STRANGER = 0.2
# What a neighbour would have called one item later has so much less of its vote.
LATER = 0.7
# Cosines start there, so that all of them are above 0.
_SHIFT = 2.0
_NOT_YET = -1


@dataclass(frozen=True, slots=True, eq=False)
class LikeTraces:
    """Past traces whose request was visible.

    `texts` float32 [traces, dimensions]: what was visible of it at their last item; trace i called `items`
    int32 `[offsets[i]:offsets[i + 1]]`; `weights` float32 [traces]; `size` of the vocabulary.
    """

    size: int
    texts: Vectors
    items: Ids
    offsets: Places
    weights: NDArray[np.float32]

    @classmethod
    def fit(cls, traces: TraceSet, size: int, texts: Vectors) -> LikeTraces:
        """Keep these traces, but those that may go on; `texts` [rows, dimensions] is what theirs name."""
        last = np.maximum(traces.offsets[1:] - 1, 0)
        kept = traces.ended
        kept = kept[(traces.weights[kept] > 0) & (traces.texts[last[kept]] >= 0)]
        kept = np.sort(kept[np.argsort(traces.times_ms[kept], kind="stable")][-TRACES_MOST:])
        lengths = np.minimum(traces.lengths[kept], ITEMS_MOST)
        starts = traces.offsets[1:][kept] - lengths
        items = traces.items[spans(starts, lengths)]
        offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        return cls(size, texts[traces.texts[last[kept]]], items, offsets, traces.weights[kept])

    def signals(self, prefixes: Prefixes) -> Mapping[str, Probabilities]:
        """float64 [prefixes, size] each, shares of the neighbours' votes, 0 without a text or a past.

        `wanted`: they called it; `ends_with`: it was their last; `remaining`: they called it beyond what was
        called so far, the sooner the more, and the more of the history they had called the more.
        """
        found = _Shares(*(np.zeros((len(prefixes), self.size)) for _ in _Shares._fields))
        if prefixes.texts is not None and len(self.weights) and len(prefixes):
            near, votes = self._neighbours(prefixes.texts)
            called = prefixes.windows(HISTORY, start=UNKNOWN, none=UNKNOWN)
            _voted(_Past(self.items, self.offsets, near, votes), called, found)
        return found._asdict()

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Its columns, and `size` [1]."""
        columns = ("texts", "items", "offsets", "weights")
        return {"size": np.array([self.size])} | {name: getattr(self, name) for name in columns}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> LikeTraces:
        """What `to_arrays` wrote.

        Raises:
            ValueError: an array is missing or does not fit: train the model again.
        """
        return cls(
            int(fitting(arrays, "size", np.int64, 1)[0]),
            fitting(arrays, "texts", np.float32, 2),
            fitting(arrays, "items", np.int32, 1),
            fitting(arrays, "offsets", np.int64, 1),
            fitting(arrays, "weights", np.float32, 1),
        )

    def _neighbours(self, texts: Vectors) -> tuple[Ids, Probabilities]:
        """int32 and float64 [prefixes, neighbours]: the nearest traces and their votes, 0 without a text."""
        near = dot_products(texts, self.texts) + _SHIFT
        places = np.zeros((len(near), min(NEIGHBOURS, near.shape[1])), dtype=np.int32)
        nearest = np.zeros(places.shape)
        best_first(near, places, nearest)
        votes = np.exp((nearest - nearest[:, :1]) / WIDTH) * self.weights[places] * (nearest > 0)
        return places, votes * np.any(texts, axis=1, keepdims=True)


class _Past(NamedTuple):
    """What traces called, and which of them are near: `near` int32 and `votes` float64 [rows, neighbours]."""

    items: Ids
    offsets: Places
    near: Ids
    votes: Probabilities


class _Shares(NamedTuple):
    """float64 [rows, size] each."""

    wanted: Probabilities
    ends_with: Probabilities
    remaining: Probabilities


@compiled
def _voted(past: _Past, called: Ids, found: _Shares) -> None:
    """Write the shares of the votes, for histories int32 [rows, places]."""
    size = found.wanted.shape[1]
    held = np.zeros(size, dtype=np.int64)
    left = np.zeros(size, dtype=np.int64)
    for row in range(called.shape[0]):
        kinds = 0
        for item in called[row]:
            if item != UNKNOWN:
                kinds += held[item] == 0
                held[item] += 1
        total, alike = 0.0, 0.0
        for place in range(past.near.shape[1]):
            vote, trace = past.votes[row, place], past.near[row, place]
            if vote > 0:
                own = past.items[past.offsets[trace] : past.offsets[trace + 1]]
                both = _counted(own, held, left, vote, found.wanted[row])
                like = vote * (STRANGER + both / max(1, kinds))
                _added(own, left, like, found.remaining[row])
                if own[-1] != UNKNOWN:
                    found.ends_with[row, own[-1]] += vote
                total += vote
                alike += like
        if total > 0:
            found.wanted[row] /= total
            found.ends_with[row] /= total
            found.remaining[row] /= alike
        for item in called[row]:
            held[item] = 0


@compiled
def _counted(own: Ids, held: Places, left: Places, vote: float, wanted: Column) -> int:
    """Vote once for each item of a trace; `left` gets how often it was called. How many kinds were."""
    both = 0
    for item in own:
        left[item] = _NOT_YET
    for item in own:
        if item != UNKNOWN and left[item] == _NOT_YET:
            left[item] = held[item]
            both += held[item] > 0
            wanted[item] += vote
    return both


@compiled
def _added(own: Ids, left: Places, like: float, remaining: Column) -> None:
    """Vote for what a trace called beyond what `left` says was called, each time with less."""
    for item in own:
        if item == UNKNOWN:
            continue
        if left[item] > 0:
            left[item] -= 1
        else:
            remaining[item] += like
            like *= LATER
