"""What is known of a candidate for a prefix: the same function in training and in serving (DESIGN §7)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.candidates import best_first
from pml.processors.learning.clause_features import CLAUSES, clause_features
from pml.processors.learning.components import LIKELY
from pml.processors.learning.evidence import COMPARED, Evidence
from pml.processors.learning.vocabulary import UNKNOWN, Ids

Features = NDArray[np.float64]

# Whose best value says how sure a component is of anything.
SURE = ("markov_1", "discounting", "nearest", "head")
# Whose best become candidates.
MEANT = ("meant", "meant_still")
PROPOSING = (*SURE, *COMPARED, "later", "asked_for", "remaining", *MEANT)
DESCRIBED = ("asked_for", "later", "later_most", "before", "wanted", "ends_with", "remaining", *MEANT)
RANKED_CLAUSES = ("clause", "clause_uncovered")
NAMES = (
    *(f"log_{name}" for name in LIKELY),
    *COMPARED,
    *DESCRIBED,
    "log_later",
    *(f"{name}_rank" for name in (*PROPOSING, "wanted")),
    *CLAUSES,
    *(f"{name}_rank" for name in RANKED_CLAUSES),
    "never_called",
    "log_count",
    "out_of_place",
    "often_first",
    "often_last",
    "times",
    "again",
    "log_calls",
    *(f"{name}_most" for name in SURE),
)
# Of each feature that of the last item, and the best of the candidates.
CONTEXTS = 2 * len(NAMES)
# Of each component so many of its best become candidates.
BEST_OF_EACH = 10
# What a component gives less than that is as good as nothing.
_LEAST, _LATER_LEAST = 1e-4, 1e-3
# Calls beyond that are no further from where an item usually stands.
_PLACE_MOST = 15


def union(found: Evidence) -> Ids:
    """int32 [prefixes, places]: the best ten of each of `PROPOSING`, each once, ascending; then `UNKNOWN`."""
    count = len(found.prefixes)
    named = np.full((len(PROPOSING), count, BEST_OF_EACH), UNKNOWN, dtype=np.int32)
    for name, items in zip(PROPOSING, named, strict=True):
        best_first(found.signals[name], items, np.zeros(items.shape))
    joined = np.sort(np.concatenate(named, axis=1), axis=1)
    again = np.zeros(joined.shape, dtype=bool)
    again[:, 1:] = joined[:, 1:] == joined[:, :-1]
    joined[again] = UNKNOWN
    joined = np.take_along_axis(joined, np.argsort(joined == UNKNOWN, axis=1, kind="stable"), axis=1)
    return joined[:, : max(1, int(np.max(np.sum(joined != UNKNOWN, axis=1), initial=0)))]


def features(found: Evidence, items: Ids) -> Features:
    """float64 [prefixes, places, len(NAMES)] of candidates, int32 [prefixes, places]; 0 where `UNKNOWN`."""
    given = {name: np.take_along_axis(values, items, axis=1) for name, values in found.signals.items()}
    named = items != UNKNOWN
    fits = clause_features(found, items)
    columns = [np.log(np.maximum(given[name], _LEAST)) for name in LIKELY]
    columns += [given[name] for name in (*COMPARED, *DESCRIBED)]
    columns.append(np.log(given["later"] + _LATER_LEAST))
    columns += [_reciprocal_ranks(given[name], named) for name in (*PROPOSING, "wanted")]
    columns += fits.values()
    columns += [_reciprocal_ranks(fits[name], named) for name in RANKED_CLAUSES]
    columns += _habits(found, items)
    columns += [_for_each(found.signals[name].max(axis=1, initial=0.0), items) for name in SURE]
    return np.asarray(np.stack(columns, axis=2) * named[:, :, None])


def contexts(found: Evidence, items: Ids, given: NDArray[np.float32]) -> NDArray[np.float32]:
    """float32 [prefixes, `CONTEXTS`]: what is known of a prefix as a whole, and so of whether it goes on.

    That is what would be known of its last item, were it a candidate, and the best of each of the candidates'
    features, float32 [prefixes, places, len(NAMES)]; empty places are none, so that it makes no difference
    which other prefixes are asked for with it.
    """
    last = features(found, found.called[:, :1])[:, 0].astype(np.float32)
    named = (items != UNKNOWN)[:, :, None]
    best = np.max(given, axis=1, where=named, initial=-np.inf)
    return np.concatenate((last, np.where(named.any(axis=1), best, 0)), axis=1)


def _habits(found: Evidence, items: Ids) -> list[Features]:
    """What is known of an item itself, and of how far the trace has come."""
    habits, called = found.components.habits, found.called
    calls = found.calls.astype(np.float64)
    return [
        (found.components.popularity.shares[items] == 0) * 1.0,
        np.log1p(habits.counts[items]),
        np.minimum(calls, _PLACE_MOST)[:, None] - habits.places[items],
        habits.firsts[items],
        habits.lasts[items],
        np.sum(called[:, :, None] == items[:, None, :], axis=1).astype(np.float64),
        (called[:, :1] == items) * 1.0,
        _for_each(np.log1p(calls), items),
    ]


def _for_each(values: Features, items: Ids) -> Features:
    """A value of each prefix, for each of its candidates."""
    return np.repeat(values[:, None], items.shape[1], axis=1)


def _reciprocal_ranks(values: Features, named: NDArray[np.bool_]) -> Features:
    """1 ÷ the place of each candidate among those of its row, of equal ones by id; 0 of values up to 0."""
    order = np.argsort(np.where(named, -values, np.inf), axis=1, kind="stable")
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, np.arange(1, values.shape[1] + 1)[None, :], axis=1)
    return np.where(values > 0, 1 / ranks, 0.0)
