"""What the clauses of a request say of candidates: which asks for one, and which is not served yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.clause_turns import NONE, turns
from pml.processors.learning.dot_products import dot_products_at
from pml.processors.learning.evidence import Evidence
from pml.processors.learning.grouping import Places
from pml.processors.learning.traces import NO_TEXT
from pml.processors.learning.vocabulary import UNKNOWN, Ids

Features = NDArray[np.float64]

CLAUSES = (
    "clause",
    "clause_uncovered",
    "clause_in_turn",
    "clause_here",
    "clause_next",
    "clause_ahead",
    "clause_free_lexical",
    "clause_free_cosine",
    "clause_titled",
    "clause_here_titled",
    "clause_next_titled",
    "clause_free_titled",
    "clauses_left",
)
# What the clause after the next one says counts so much of it, and so on.
FURTHER = 0.8


def clause_features(found: Evidence, items: Ids) -> Mapping[str, Features]:
    """float64 [prefixes, places] by name, of candidates int32 likewise; 0 where no text is visible.

    `clause`: how well the best one fits (cosine and lexical share together); `clause_uncovered`: how much
    better than the best of the items called so far; `clause_in_turn`: as many lie before it as there were
    calls. Then by turns (`clause_turns`): how the one of the last call fits, the next free one, the best free
    one after it, the further the less, the best free one by words and by cosine, and how many are free.
    `…_titled`: how much of its name the clause says that says most of it, the one of the last call, the next
    free one, and the best free one.
    """
    clauses, counts = _clauses(found)
    if not counts.any():
        return {name: np.zeros(items.shape) for name in CLAUSES}
    offered, called = _fits(found, clauses, items), _fits(found, clauses, found.called)
    told = _compared(offered, called.both, counts, found) | _in_turn(offered, called.both, counts, found)
    return {name: np.where((counts > 0)[:, None], told[name], 0.0) for name in CLAUSES}


@dataclass(frozen=True, slots=True, eq=False)
class _Fits:
    """float64 [prefixes, clauses, places] each; 0 of what is not there."""

    cosine: Features
    lexical: Features
    titled: Features

    @property
    def both(self) -> Features:
        return self.cosine + self.lexical


def _clauses(found: Evidence) -> tuple[Places, Places]:
    """int64 [prefixes, clauses]: rows of the requests' clauses, then `NONE`; int64: how many there are."""
    count = len(found.rows)
    if len(found.texts.offsets) < 2:
        return np.full((count, 1), NONE), np.zeros(count, dtype=np.int64)
    told = np.maximum(found.rows, 0)
    counts = np.where(found.rows == NO_TEXT, 0, np.diff(found.texts.offsets)[told])
    places = np.arange(max(1, int(counts.max(initial=0))))
    return np.where(places < counts[:, None], found.texts.offsets[told][:, None] + places, NONE), counts


def _fits(found: Evidence, clauses: Places, items: Ids) -> _Fits:
    points, texts = found.components.points, found.texts
    cosines = dot_products_at(texts.clause_points, np.maximum(clauses, 0), points, items)
    lexical = texts.clause_lexical[clauses[:, :, None], items[:, None, :]]
    titled = texts.clause_titled[clauses[:, :, None], items[:, None, :]]
    there = (clauses != NONE)[:, :, None] & (items != UNKNOWN)[:, None, :]
    return _Fits(*(np.where(there, each, 0.0).astype(np.float64) for each in (cosines, lexical, titled)))


def _compared(offered: _Fits, called: Features, counts: Places, found: Evidence) -> dict[str, Features]:
    """A clause is covered as well as the best of the items called so far fits it."""
    covered = np.maximum(called, 0).max(axis=2, initial=0.0)
    # Below all that is there: how many clauses other prefixes have must not tell.
    fits = np.where(_there(offered.both, counts), offered.both, -np.inf)
    gains = fits - covered[:, :, None]
    calls = found.calls[:, None]
    away = np.abs(np.argmax(gains, axis=1) - calls) / np.maximum(counts, 1)[:, None]
    return {
        "clause": fits.max(axis=1),
        "clause_uncovered": gains.max(axis=1, initial=-np.inf),
        "clause_in_turn": 1 - np.minimum(away, 1),
    }


def _in_turn(offered: _Fits, called: Features, counts: Places, found: Evidence) -> dict[str, Features]:
    calls = np.sum(found.called != UNKNOWN, axis=1)
    free, last = turns(called, np.column_stack((counts, calls)))
    ahead = free & (np.arange(free.shape[1]) > last[:, None])
    before = np.maximum(np.cumsum(ahead, axis=1) - 1, 0)
    # At least 0, as what is not there: how many clauses other prefixes have must not tell.
    discounted = np.where(ahead, FURTHER**before, 0.0)[:, :, None] * offered.both
    first = ahead & (before == 0)
    here = np.arange(free.shape[1]) == last[:, None]
    return {
        "clause_here": np.sum(offered.both * here[:, :, None], axis=1),
        "clause_next": np.sum(offered.both * first[:, :, None], axis=1),
        "clause_ahead": np.max(discounted, axis=1, initial=0.0),
        "clause_free_lexical": np.max(offered.lexical * free[:, :, None], axis=1, initial=0.0),
        "clause_free_cosine": np.max(offered.cosine * free[:, :, None], axis=1, initial=0.0),
        "clause_titled": np.max(offered.titled, axis=1, initial=0.0),
        "clause_here_titled": np.sum(offered.titled * here[:, :, None], axis=1),
        "clause_next_titled": np.sum(offered.titled * first[:, :, None], axis=1),
        "clause_free_titled": np.max(offered.titled * free[:, :, None], axis=1, initial=0.0),
        "clauses_left": np.repeat(
            free.sum(axis=1)[:, None].astype(np.float64), offered.both.shape[2], axis=1
        ),
    }


def _there(fits: Features, counts: Places) -> NDArray[np.bool_]:
    return (np.arange(fits.shape[1]) < counts[:, None])[:, :, None]
