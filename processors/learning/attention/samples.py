"""Batches for training: what came after each prefix of some traces, and what did not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.attention.descent import Batch
from pml.processors.learning.attention.head import NOBODY, Asked
from pml.processors.learning.attention.parameters import Floats
from pml.processors.learning.dot_products import dot_products
from pml.processors.learning.grouping import Places, spans
from pml.processors.learning.sampling import sampled_of_each
from pml.processors.learning.traces import NO_TEXT, Prefixes, TraceSet
from pml.processors.learning.vocabulary import UNKNOWN, Ids

# An item that went with less has failed: it is no target, but a negative after what came before it.
FAILED_BELOW = 0.5
# Of a longer trace so many steps, drawn anew for each batch.
STEPS_MOST = 64


def read(prefixes: Prefixes, basis: Floats, recent: int, features: int) -> Asked:
    """What the model is asked for prefixes; zeros for what is not known of them.

    Args:
        prefixes: their `texts` float32 [prefixes, dimensions] are read through `basis` [dimensions, text].
        recent: how many of the latest items are read.
        features: how many `features` of each prefix are read; of 0 nobody looks at those that they have.

    Raises:
        ValueError: the prefixes have another number of features.
    """
    count = len(prefixes)
    texts = np.zeros((count, basis.shape[1]), dtype=np.float32)
    if prefixes.texts is not None:
        texts = dot_products(prefixes.texts, basis.T).astype(np.float32)
    known = prefixes.features
    if known is None or features == 0:
        known = np.zeros((count, features), dtype=np.float32)
    if known.shape != (count, features):
        raise ValueError(f"the model was trained with {features} features, the prefixes have {known.shape}")
    windows = prefixes.windows(recent, start=UNKNOWN, none=UNKNOWN)
    return Asked(np.ascontiguousarray(texts), windows.astype(np.int32), np.ascontiguousarray(known))


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """All steps of traces. `texts` float32 [rows, text] are points that `traces.texts` names, `features`
    float32 [items, features] are known before each item.
    """

    traces: TraceSet
    texts: Floats
    features: Floats
    recent: int
    negatives: int
    failures: int
    size: int
    called: Ids = field(init=False)
    _asked: Asked = field(init=False)
    _weights: Floats = field(init=False)
    _followed: tuple[Places, Ids] = field(init=False)

    def __post_init__(self) -> None:
        traces = self.traces
        called = np.unique(traces.items)
        object.__setattr__(self, "called", called[called != UNKNOWN].astype(np.int32))
        everything = traces.prefixes(np.arange(len(traces.items)))
        windows = everything.windows(self.recent, start=UNKNOWN, none=UNKNOWN).astype(np.int32)
        rows = np.zeros((len(traces.items), self.texts.shape[1]), dtype=np.float32)
        told = np.flatnonzero(traces.texts != NO_TEXT)
        rows[told] = self.texts[traces.texts[told]]
        object.__setattr__(self, "_asked", Asked(rows, windows, self.features))
        weights = traces.weights[traces.owners] * traces.success
        object.__setattr__(self, "_weights", weights.astype(np.float32))
        object.__setattr__(self, "_followed", _after(windows[:, 0], self._failures_alone()))

    def steps_of(self, rows: Places, seed: Sequence[int]) -> tuple[Places, Places]:
        """int64 [steps] each: places of the steps of these traces, and which of `rows` each belongs to.

        The seed draws those of traces that have more than `STEPS_MOST`.
        """
        lengths = self.traces.lengths[rows]
        kept = sampled_of_each(lengths, STEPS_MOST, seed)
        places, owners = spans(self.traces.offsets[rows], lengths), np.repeat(np.arange(len(rows)), lengths)
        return places[kept], owners[kept]

    def batch(self, places: Places, scales: NDArray[np.float64], own: Floats, seed: Sequence[int]) -> Batch:
        """These steps with drawn negatives; `scales` [steps] weigh them on top of their traces."""
        texts, recent, features = self._asked
        asked = Asked(texts[places], recent[places], features[places])
        targets = self.traces.items[places].astype(np.int32)
        right = np.where(targets == UNKNOWN, NOBODY, targets)[:, None].astype(np.int32)
        drawn = self._drawn(asked.recent[:, 0], np.random.default_rng(seed))
        wrong = np.where(drawn == right, NOBODY, drawn).astype(np.int32)
        weights = (self._weights[places] * scales).astype(np.float32)
        return Batch(asked, np.concatenate((right, wrong), axis=1), weights, own)

    def _drawn(self, latest: Ids, draws: np.random.Generator) -> Ids:
        """int32 [steps, negatives + failures]: any items, and what failed after the latest.

        Where there are no more items than are drawn, all of them stand there. Each of the failures is one of
        all steps after the latest item, and `NOBODY` where that step went well: so an item is a negative as
        often as it fails there, and a rare failure takes little from what mostly succeeds.
        """
        shape = (len(latest), min(self.negatives, self.size - 1))
        if shape[1] < self.negatives:
            anything = np.broadcast_to(np.arange(UNKNOWN + 1, self.size), shape)
        else:
            anything = draws.integers(UNKNOWN + 1, self.size, shape)
        keys, came = self._followed
        starts, ends = (np.searchsorted(keys, latest, side) for side in ("left", "right"))
        uniform = draws.random((len(latest), self.failures))
        # None of these is empty: each latest item stands before the step that is asked for.
        failed = came[starts[:, None] + (uniform * (ends - starts)[:, None]).astype(np.int64)]
        return np.concatenate((anything, failed), axis=1).astype(np.int32)

    def _failures_alone(self) -> Ids:
        """int32 [items]: those that failed, `NOBODY` in place of the others."""
        failed = (self.traces.success < FAILED_BELOW) & (self.traces.items != UNKNOWN)
        return np.where(failed, self.traces.items, NOBODY).astype(np.int32)


def _after(latest: Ids, items: Ids) -> tuple[Places, Ids]:
    order = np.argsort(latest, kind="stable")
    return latest[order].astype(np.int64), items[order]
