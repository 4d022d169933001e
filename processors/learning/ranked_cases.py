"""What a ranker learns its weights from: candidates of past prefixes, and which of them came.

It is cross-fitted: the features of a training trace come from components that saw no trace of its group, as
those of a trace in serving do. After the last item of a trace that is over nothing came: that is learned from
contexts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.candidates import parts
from pml.processors.learning.components import Components
from pml.processors.learning.evidence import evidence
from pml.processors.learning.features import CONTEXTS, NAMES, contexts, features, union
from pml.processors.learning.grouping import Places
from pml.processors.learning.requests import Requests
from pml.processors.learning.sampling import sampled
from pml.processors.learning.softmax import NONE
from pml.processors.learning.splits import folds
from pml.processors.learning.traces import Prefixes, TraceSet, Vectors
from pml.processors.learning.vocabulary import UNKNOWN, Ids

Singles = NDArray[np.float32]

INNER_FOLDS = 5
# Cases that weights are learned from: prefixes after which something came, and ends of traces. Of more they
# are drawn together, so that ends stay as frequent among them as they are.
CASES_MOST = 14_000
_NO_CONTEXTS = np.zeros((0, CONTEXTS), dtype=np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Cases:
    """`items` int32 [prefixes, places], `features` of them; `right` int64: where what came is, or `NONE`.

    `contexts` float32 [prefixes, `CONTEXTS`]; `ended` likewise, of traces at their end. `folds` int64
    [prefixes]: whose components saw none of their group; those of one group have the same.
    """

    items: Ids
    features: Singles
    right: NDArray[np.int64]
    contexts: Singles
    ended: Singles
    folds: Places

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
        seed: of the inner folds, of what is drawn in them, and of the cases where there are too many.
    """
    fold = folds(traces.groups, INNER_FOLDS, seed)
    asked, ends = _kept(traces.questions(0), traces.ended, seed)
    of = fold[traces.owners[asked]]
    found: list[Cases] = []
    ended: list[Singles] = []
    for held in range(INNER_FOLDS):
        seen = traces.selected(np.flatnonzero(fold != held))
        components = Components.fit(seen, points, requests, seed)
        places = asked[of == held]
        told = cases(components, traces.prefixes(places), traces.items[places], requests)
        found += [replace(each, folds=each.folds + held) for each in told]
        last = traces.whole(ends[fold[ends] == held])
        came = np.full(len(last), UNKNOWN, dtype=np.int32)
        ended += [each.contexts for each in cases(components, last, came, requests)]
    return joined(found, ended)


def _kept(asked: Places, ends: Places, seed: int) -> tuple[Places, Places]:
    """At most `CASES_MOST` of both, at one rate."""
    kept = sampled(len(asked) + len(ends), CASES_MOST, seed)
    first = np.searchsorted(kept, len(asked))
    return asked[kept[:first]], ends[kept[first:] - len(asked)]


def cases(components: Components, prefixes: Prefixes, came: Ids, requests: Requests) -> Iterator[Cases]:
    """What these components say of candidates for prefixes, some at once; `came` int32 is what came next."""
    for start, end in parts(len(prefixes), len(components.points)):
        found = evidence(components, prefixes.part(start, end), requests)
        items = union(found)
        right = (items == came[start:end, None]) & (items != UNKNOWN)
        given = features(found, items).astype(np.float32)
        place = np.where(right.any(axis=1), right.argmax(axis=1), NONE)
        yield Cases(items, given, place, contexts(found, items, given), _NO_CONTEXTS, place * 0)


def joined(found: list[Cases], ended: list[Singles]) -> Cases:
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
    return Cases(
        items,
        given,
        np.concatenate(rights) if rights else np.zeros(0, dtype=np.int64),
        np.concatenate([_NO_CONTEXTS, *(each.contexts for each in found)]),
        np.concatenate([_NO_CONTEXTS, *ended]),
        np.concatenate([np.zeros(0, dtype=np.int64), *(each.folds for each in found)]),
    )
