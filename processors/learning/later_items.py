"""What usually comes later in a trace than an item, and what usually comes before it: counts of pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.candidates import Probabilities, fitting
from pml.processors.learning.compiled import compiled
from pml.processors.learning.grouping import Places, summed
from pml.processors.learning.traces import Prefixes, TraceSet
from pml.processors.learning.vocabulary import UNKNOWN, Ids

Column = NDArray[np.float64]

# Items that lie further apart than that are no pair.
APART_MOST = 24
# Of a history so many of the latest items are looked at.
HISTORY = 16


class _Rows(NamedTuple):
    """For each item, from `offsets[item]` on: others int32 and a share float64 of each."""

    offsets: Places
    items: Ids
    shares: Column


@dataclass(frozen=True, slots=True, eq=False)
class LaterItems:
    """`keys` int64 ascending, earlier × size + later; `counts` float64: the weight of traces with that pair.

    `traces` float64 [size]: the weight of traces with an item.
    """

    traces: Column
    keys: Places
    counts: Column
    _later: _Rows = field(init=False, repr=False)
    _before: _Rows = field(init=False, repr=False)

    def __post_init__(self) -> None:
        one, other = np.divmod(self.keys, max(1, self.size))
        back = _counts_of(other * self.size + one, self.keys, self.counts)
        object.__setattr__(self, "_later", _rows(one, other, self.counts / (self.traces[one] + 1), self.size))
        before = self.counts / (self.counts + back + 1)
        object.__setattr__(self, "_before", _rows(other, one, before, self.size))

    @classmethod
    def fit(cls, traces: TraceSet, size: int) -> LaterItems:
        """Count the pairs of these traces, each once a trace."""
        owners, items = traces.owners, traces.items.astype(np.int64)
        held = np.unique(owners * size + items) if size else np.zeros(0, dtype=np.int64)
        held = held[held % max(1, size) != UNKNOWN]
        weights = traces.weights.astype(np.float64)
        of = summed(weights[held // max(1, size)], held % max(1, size), size)
        pairs = np.unique(
            np.concatenate([_pairs(owners, items, size, by) for by in range(1, APART_MOST + 1)])
        )
        keys, which = np.unique(pairs % max(1, size * size), return_inverse=True)
        return cls(of, keys, summed(weights[pairs // max(1, size * size)], which, len(keys)))

    @property
    def size(self) -> int:
        """That of its vocabulary."""
        return len(self.traces)

    def signals(self, prefixes: Prefixes) -> Mapping[str, Probabilities]:
        """float64 [prefixes, size] each, of every item.

        `later` and `later_most`: how often it came later than one of the items called so far, the mean and
        the largest; `before`: how often it came before them instead, the mean.
        """
        called = prefixes.windows(HISTORY, start=UNKNOWN, none=UNKNOWN)
        later, before = (_looked_up(called, rows, self.size) for rows in (self._later, self._before))
        return {"later": later[0], "later_most": later[1], "before": before[0]}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Its three columns."""
        return {"traces": self.traces, "keys": self.keys, "counts": self.counts}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> LaterItems:
        """What `to_arrays` wrote.

        Raises:
            ValueError: an array is missing or does not fit: train the model again.
        """
        dtypes = {"traces": np.float64, "keys": np.int64, "counts": np.float64}
        return cls(*(fitting(arrays, name, dtype, 1) for name, dtype in dtypes.items()))


def _pairs(owners: Places, items: Places, size: int, apart: int) -> Places:
    """int64: trace × size² + earlier × size + later, of items so far apart in one trace."""
    one, other = items[:-apart], items[apart:]
    kept = (owners[:-apart] == owners[apart:]) & (one != UNKNOWN) & (other != UNKNOWN)
    found: Places = (owners[:-apart][kept] * size + one[kept]) * size + other[kept]
    return found


def _counts_of(wanted: Places, keys: Places, counts: Column) -> Column:
    """float64: the count of each key, 0 where there is none."""
    if len(keys) == 0:
        return np.zeros(len(wanted))
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, counts[places], 0.0)


def _rows(of: Places, others: Places, shares: Column, size: int) -> _Rows:
    order = np.argsort(of, kind="stable")
    offsets = np.searchsorted(of[order], np.arange(size + 1)).astype(np.int64)
    return _Rows(offsets, others[order].astype(np.int32), shares[order])


def _looked_up(called: Ids, rows: _Rows, size: int) -> tuple[Probabilities, Probabilities]:
    mean, most = np.zeros((len(called), size)), np.zeros((len(called), size))
    _added(called, rows, mean, most)
    return mean, most


@compiled
def _added(called: Ids, rows: _Rows, mean: Probabilities, most: Probabilities) -> None:
    """Write mean and largest share over the called items of each row, int32 [n, places]."""
    for row in range(called.shape[0]):
        known = 0
        for item in called[row]:
            if item != UNKNOWN:
                known += 1
        for item in called[row]:
            if item == UNKNOWN:
                continue
            for place in range(rows.offsets[item], rows.offsets[item + 1]):
                other, share = rows.items[place], rows.shares[place]
                mean[row, other] += share / known
                most[row, other] = max(most[row, other], share)
