"""What a ranker learns its weights from: candidates of past prefixes, and which of them came.

It is cross-fitted: the features of a training trace come from components that saw no trace of its group, as
those of a trace in serving do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.components import Components
from pml.processors.learning.evidence import evidence
from pml.processors.learning.features import NAMES, features, union
from pml.processors.learning.requests import Requests
from pml.processors.learning.softmax import NONE
from pml.processors.learning.splits import folds
from pml.processors.learning.traces import Prefixes, TraceSet, Vectors
from pml.processors.learning.vocabulary import UNKNOWN, Ids

Singles = NDArray[np.float32]

INNER_FOLDS = 5
# Prefixes that weights are learned from, evenly from all.
TRAINED_MOST = 6_000
ROWS_AT_ONCE = 256


@dataclass(frozen=True, slots=True, eq=False)
class Cases:
    """`items` int32 [prefixes, places], `features` of them; `right` int64: where what came is, or `NONE`."""

    items: Ids
    features: Singles
    right: NDArray[np.int64]

    @property
    def named(self) -> NDArray[np.bool_]:
        """bool [prefixes, places]: where there is a candidate."""
        return np.asarray(self.items != UNKNOWN)


def cross_fitted(traces: TraceSet, points: Vectors, requests: Requests, seed: int) -> Cases:
    """The cases of these traces.

    Args:
        traces: their `texts` name rows of `requests`.
        points: float32 [size, dimensions], the description of each item of the vocabulary.
        requests: what was visible.
        seed: of the inner folds.
    """
    fold = folds(traces.groups, INNER_FOLDS, seed)
    asked = traces.positions()
    asked = asked[:: max(1, -(-len(asked) // TRAINED_MOST))]
    of = fold[traces.owners[asked]]
    found: list[Cases] = []
    for held in range(INNER_FOLDS):
        seen = traces.selected(np.flatnonzero(fold != held))
        components = Components.fit(seen, points, requests.points)
        places = asked[of == held]
        found += cases(components, traces.prefixes(places), traces.items[places], requests)
    return joined(found)


def cases(components: Components, prefixes: Prefixes, came: Ids, requests: Requests) -> Iterator[Cases]:
    """What these components say of candidates for prefixes, some at once; `came` int32 is what came next."""
    for start in range(0, len(prefixes), ROWS_AT_ONCE):
        end = min(start + ROWS_AT_ONCE, len(prefixes))
        found = evidence(components, prefixes.part(start, end), requests)
        items = union(found)
        right = (items == came[start:end, None]) & (items != UNKNOWN)
        given = features(found, items).astype(np.float32)
        yield Cases(items, given, np.where(right.any(axis=1), right.argmax(axis=1), NONE))


def joined(found: list[Cases]) -> Cases:
    """One below the other, empty places behind."""
    most = max((each.items.shape[1] for each in found), default=1)
    count = sum(len(each.items) for each in found)
    items = np.full((count, most), UNKNOWN, dtype=np.int32)
    given = np.zeros((count, most, len(NAMES)), dtype=np.float32)
    start = 0
    for each in found:
        end, places = start + len(each.items), each.items.shape[1]
        items[start:end, :places], given[start:end, :places] = each.items, each.features
        start = end
    rights = [each.right for each in found]
    return Cases(items, given, np.concatenate(rights) if rights else np.zeros(0, dtype=np.int64))
