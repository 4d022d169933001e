"""How often what came after which items: counts for contexts of growing length, as sorted arrays.

A context of length k is the one of length k − 1 (its latest items) and the item before it, so its key is
(number of the shorter one, item): exact whatever the length, and one binary search for each length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.candidates import fitting
from pml.processors.learning.grouping import Places, spans, summed
from pml.processors.learning.traces import Prefixes, TraceSet
from pml.processors.learning.vocabulary import UNKNOWN, Ids

Counts = NDArray[np.float64]

UNSEEN = -1
# Before the first item, or before the symbol that says where it is: no longer context there.
_NOTHING = -1
_COLUMNS = (("keys", np.int64), ("offsets", np.int64), ("items", np.int32), ("counts", np.float64))


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """Contexts of one length: `keys` int64 ascending; what came after number c: `offsets[c]:offsets[c + 1]`.

    There lie `items` int32, ascending, and `counts` float64, sums of weights above 0.
    """

    keys: Places
    offsets: Places
    items: Ids
    counts: Counts

    @property
    def owners(self) -> Places:
        """int64: the context of each of `items`."""
        return np.repeat(np.arange(len(self.keys)), np.diff(self.offsets))

    def sums(self, values: Counts) -> Counts:
        """float64 [contexts]: a value of each of `items`, summed for its context."""
        return summed(values, self.owners, len(self.keys))

    def found(self, keys: Places) -> Places:
        """int64: the number of each key, `UNSEEN` where there is none."""
        if len(self.keys) == 0:
            return np.full(len(keys), UNSEEN)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[places] == keys, places, UNSEEN)

    def after(self, contexts: Places) -> tuple[Places, Places]:
        """Of seen contexts: for all that came after, its row in `contexts` and its place in `items`."""
        lengths = self.offsets[contexts + 1] - self.offsets[contexts]
        rows = np.repeat(np.arange(len(contexts)), lengths)
        return rows, spans(self.offsets[contexts], lengths)


@dataclass(frozen=True, slots=True, eq=False)
class ContextCounts:
    """Counts after contexts of length 0 (one, the empty one) to `order`.

    With `begins`, the start of a trace is an item of its own in contexts, so what comes first is learned too.
    """

    size: int
    begins: bool
    levels: tuple[Level, ...]

    @property
    def order(self) -> int:
        """The length of the longest context."""
        return len(self.levels) - 1

    def contexts(self, prefixes: Prefixes) -> Iterator[tuple[Level, Places]]:
        """Length by length, the shortest first: the context of each prefix, `UNSEEN` where it is new."""
        window = _window(prefixes, self.order, self.size, self.begins)
        numbers = np.zeros(len(prefixes), dtype=np.int64)
        for length, level in enumerate(self.levels):
            if length:
                past = window[:, length - 1]
                known = (numbers != UNSEEN) & (past != _NOTHING)
                numbers = np.where(known, level.found(numbers * (self.size + 1) + past), UNSEEN)
            elif len(level.keys) == 0:
                numbers = np.full(len(prefixes), UNSEEN)
            yield level, numbers

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """`size`, `begins`, and for each length its four columns, as `keys_0`."""
        told: dict[str, NDArray[Any]] = {
            "size": np.array([self.size]),
            "begins": np.array([int(self.begins)]),
        }
        for length, level in enumerate(self.levels):
            told |= {f"{name}_{length}": getattr(level, name) for name, _ in _COLUMNS}
        return told

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> ContextCounts:
        """The counts that `to_arrays` wrote.

        Raises:
            ValueError: an array is missing or does not fit: train the model again.
        """
        size = int(fitting(arrays, "size", np.int64, 1)[0])
        begins = bool(fitting(arrays, "begins", np.int64, 1)[0])
        levels: list[Level] = []
        while f"keys_{len(levels)}" in arrays or not levels:
            columns = (fitting(arrays, f"{name}_{len(levels)}", dtype, 1) for name, dtype in _COLUMNS)
            levels.append(Level(*columns))
        return cls(size, begins, tuple(levels))


def count_contexts(traces: TraceSet, size: int, order: int, begins: bool) -> ContextCounts:
    """Count what came after contexts of up to `order` items; what is unknown may be context, never a count.

    Traces count by their weight.
    """
    prefixes = traces.prefixes(np.arange(len(traces.items)))
    window = _window(prefixes, order, size, begins)
    weights = traces.weights[traces.owners].astype(np.float64)
    kept = np.flatnonzero((traces.items != UNKNOWN) & (weights > 0))
    parents, levels = np.zeros(len(kept), dtype=np.int64), []
    for length in range(order + 1):
        if length:
            inside = window[kept, length - 1] != _NOTHING
            kept, parents = kept[inside], parents[inside]
            parents = parents * (size + 1) + window[kept, length - 1]
        level, parents = _level(parents, traces.items[kept], weights[kept], size)
        levels.append(level)
    return ContextCounts(size, begins, tuple(levels))


def _level(keys: Places, items: Ids, weights: Counts, size: int) -> tuple[Level, Places]:
    names, contexts = np.unique(keys, return_inverse=True)
    pairs, of = np.unique(contexts * (size + 1) + items, return_inverse=True)
    counts = summed(weights, of, len(pairs))
    offsets = np.searchsorted(pairs // (size + 1), np.arange(len(names) + 1))
    level = Level(names, offsets.astype(np.int64), (pairs % (size + 1)).astype(np.int32), counts)
    return level, contexts


def _window(prefixes: Prefixes, order: int, size: int, begins: bool) -> Ids:
    return prefixes.windows(order, start=size if begins else _NOTHING, none=_NOTHING)
