"""What is known of a candidate for a prefix: the same function in training and in serving (DESIGN §7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.candidates import best_first
from pml.processors.learning.components import COUNTED, Components
from pml.processors.learning.grouping import Places
from pml.processors.learning.requests import Requests
from pml.processors.learning.traces import NO_TEXT, Prefixes
from pml.processors.learning.vocabulary import UNKNOWN, Ids

Features = NDArray[np.float64]

# Whose best become candidates, and whose ranks are features.
COMPARED = ("cosine", "lexical", "like_the_last", "recency")
PROPOSING = ("markov_1", "discounting", "nearest", *COMPARED)
NAMES = (
    *(f"log_{name}" for name in COUNTED),
    *COMPARED,
    *(f"{name}_rank" for name in PROPOSING),
    "clause",
    "clause_uncovered",
    "clause_in_turn",
    "clause_rank",
    "clause_uncovered_rank",
    "never_called",
)
# Of each component so many of its best become candidates.
BEST_OF_EACH = 10
# What a component gives less than that is as good as nothing.
_LEAST = 1e-4
# Items of the history that may cover a clause, the latest ones.
_HISTORY = 16
_NOTHING = -1


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What all features of some prefixes are made from; `signals` float64 [prefixes, size] by name.

    `rows` int64 [prefixes] are those of `requests`, `NO_TEXT` where nothing was visible.
    """

    components: Components
    prefixes: Prefixes
    requests: Requests
    rows: Places
    signals: Mapping[str, Features]


def evidence(components: Components, prefixes: Prefixes, requests: Requests) -> Evidence:
    """Ask every component; `prefixes.text_rows` names rows of `requests`."""
    count, size = len(prefixes), len(components.points)
    rows = np.full(count, NO_TEXT) if prefixes.text_rows is None else prefixes.text_rows
    told = np.flatnonzero(rows != NO_TEXT)
    texts = np.zeros((count, components.points.shape[1]), dtype=np.float32)
    texts[told] = requests.points[rows[told]]
    lexical = np.zeros((count, size))
    lexical[told] = requests.lexical[rows[told]]
    read = replace(prefixes, texts=texts)
    signals = {name: part.probabilities(read) for name, part in components.parts.items()}
    like, recency = _history(components, read)
    cosines = (texts @ components.points.T).astype(np.float64)
    signals |= dict(zip(COMPARED, (cosines, lexical, like, recency), strict=True))
    return Evidence(components, read, requests, rows, signals)


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
    columns = [np.log(np.maximum(given[name], _LEAST)) for name in COUNTED]
    columns += [given[name] for name in COMPARED]
    columns += [_reciprocal_ranks(given[name], named) for name in PROPOSING]
    fits = _clauses(found, items)
    columns += [*fits, *(_reciprocal_ranks(fit, named) for fit in fits[:2])]
    columns.append((found.components.popularity.shares[items] == 0) * 1.0)
    return np.asarray(np.stack(columns, axis=2) * named[:, :, None])


def _reciprocal_ranks(values: Features, named: NDArray[np.bool_]) -> Features:
    """1 ÷ the place of each candidate among those of its row, of equal ones by id; 0 of values up to 0."""
    order = np.argsort(np.where(named, -values, np.inf), axis=1, kind="stable")
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, np.arange(1, values.shape[1] + 1)[None, :], axis=1)
    return np.where(values > 0, 1 / ranks, 0.0)


def _clauses(found: Evidence, items: Ids) -> tuple[Features, Features, Features]:
    """How well the best clause fits, how well the best one not covered yet, and whether it is its turn.

    A clause is covered as well as the best of the items called so far fits it; it is the turn of the one
    with as many before it as there were calls.
    """
    told = np.maximum(found.rows, 0)
    if len(found.requests.offsets) < 2:
        nothing = np.zeros(items.shape)
        return nothing, nothing, nothing
    counts = np.where(found.rows == NO_TEXT, 0, np.diff(found.requests.offsets)[told])
    places = np.arange(max(1, int(counts.max(initial=0))))
    clauses = np.where(places < counts[:, None], found.requests.offsets[told][:, None] + places, _NOTHING)
    called = found.prefixes.windows(_HISTORY, start=UNKNOWN, none=UNKNOWN)
    fits = _fits(found, clauses, items)
    covered = np.maximum(_fits(found, clauses, called), 0).max(axis=2, initial=0.0)
    # Below all that is there: how many clauses other prefixes have must not tell.
    fits = np.where((clauses == _NOTHING)[:, :, None], -np.inf, fits)
    gains = fits - covered[:, :, None]
    known = (counts > 0)[:, None]
    calls = (found.prefixes.ends - found.prefixes.starts)[:, None]
    away = np.abs(np.argmax(gains, axis=1) - calls) / np.maximum(counts, 1)[:, None]
    return (
        np.where(known, fits.max(axis=1), 0.0),
        np.where(known, gains.max(axis=1, initial=-np.inf), 0.0),
        np.where(known, 1 - np.minimum(away, 1), 0.0),
    )


def _fits(found: Evidence, clauses: Places, items: Ids) -> Features:
    """float64 [prefixes, clauses, places]: cosine and lexical share together; 0 of what is not there."""
    points, texts = found.components.points, found.requests
    cosines = texts.clause_points[clauses] @ np.swapaxes(points[items], 1, 2)
    lexical = texts.clause_lexical[clauses[:, :, None], items[:, None, :]]
    there = (clauses != _NOTHING)[:, :, None] & (items != UNKNOWN)[:, None, :]
    return np.where(there, cosines + lexical, 0.0).astype(np.float64)


def _history(components: Components, prefixes: Prefixes) -> tuple[Features, Features]:
    """float64 [prefixes, size] each: how like the last item, and 1 ÷ how many calls ago it was called."""
    called = prefixes.windows(_HISTORY, start=UNKNOWN, none=UNKNOWN)
    last = called[:, 0]
    like = (components.points[last] @ components.points.T).astype(np.float64) * (last != UNKNOWN)[:, None]
    recency = np.zeros(like.shape)
    for ago in range(_HISTORY, 0, -1):
        recency[np.arange(len(called)), called[:, ago - 1]] = 1 / ago
    recency[:, UNKNOWN] = 0
    return like, recency
