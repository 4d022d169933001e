"""Traces as columns: what was called one after another, and what is known of each trace. No object a row."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.grouping import Places, spans
from pml.processors.learning.vocabulary import Ids

Vectors = NDArray[np.float32]

NO_TEXT = -1


@dataclass(frozen=True, slots=True, eq=False)
class Prefixes:
    """Histories whose next item is asked for: number i is `items[starts[i]:ends[i]]`, the latest item last.

    Histories share one array, so those of one trace cost nothing. `texts` has a row for each: the point of
    the request's text as far as it was visible then, the origin where nothing was; None: no text is known.
    `text_rows` int64 names those texts, `NO_TEXT` where nothing was, for who reads more of them than a point.
    `features` float32 has a row for each: what the latest item was called with, zeros where none is.
    """

    items: Ids
    starts: Places
    ends: Places
    texts: Vectors | None = None
    text_rows: Places | None = None
    features: Vectors | None = None

    def __len__(self) -> int:
        return len(self.starts)

    def part(self, start: int, end: int) -> Prefixes:
        """Some of them, in their order."""
        texts = None if self.texts is None else self.texts[start:end]
        rows = None if self.text_rows is None else self.text_rows[start:end]
        features = None if self.features is None else self.features[start:end]
        return Prefixes(self.items, self.starts[start:end], self.ends[start:end], texts, rows, features)

    def windows(self, length: int, start: int, none: int) -> Ids:
        """int32 [prefixes, length]: the last items of each, the latest first.

        `start` stands once before the first item, and `none` before that.
        """
        places = self.ends[:, None] - 1 - np.arange(length)
        first = self.starts[:, None]
        if len(self.items) == 0:
            inner = np.full(places.shape, none, dtype=np.int32)
        else:
            inner = self.items[np.clip(places, 0, len(self.items) - 1)]
        before = np.where(places == first - 1, np.int32(start), np.int32(none))
        return np.where(places >= first, inner, before)


@dataclass(frozen=True, slots=True, eq=False)
class TraceSet:
    """Trace i has the items `items[offsets[i]:offsets[i + 1]]` in the order in which they ended.

    `items` int32, `offsets` int64 [traces + 1]; for each trace `outcomes` float32 (0 failure, 1 success),
    `weights` float32 (1 a real one, less for exploratory and mocked ones), `groups` int64 (near-duplicates
    have the same) and `times_ms` int64 (its end, Unix time). For each item `success` float32, how that item
    itself went (as `outcomes`), and `texts` int64: the row, in a matrix of points, of the request as it was
    visible before that item, `NO_TEXT` where nothing was. `end_texts` int64 [traces] likewise: as it was
    visible after the last item, when nobody knew yet that nothing more would come. `looks` float32 [items, n]
    says of each item itself what it was called with (`looks.look`); None: of no item that is known. `settled`
    bool [items]: whether it is known what came after each, or that nothing did (`pauses.settled`); None: of
    all.

    Raises:
        ValueError: the columns do not belong together.
    """

    items: Ids
    success: NDArray[np.float32]
    offsets: Places
    outcomes: NDArray[np.float32]
    weights: NDArray[np.float32]
    groups: Places
    times_ms: Places
    texts: Places
    end_texts: Places
    looks: Vectors | None = None
    settled: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        if len(self.offsets) == 0 or self.offsets[0] != 0 or self.offsets[-1] != len(self.items):
            raise ValueError("the offsets of traces begin with 0 and end with the number of items")
        if np.any(np.diff(self.offsets) < 0):
            raise ValueError("the offsets of traces must not fall")
        of_traces = (self.outcomes, self.weights, self.groups, self.times_ms, self.end_texts)
        of_items = (self.success, self.texts, *(() if self.settled is None else (self.settled,)))
        if any(len(column) != len(self) for column in of_traces) or any(
            len(column) != len(self.items) for column in of_items
        ):
            raise ValueError("a column has another length than its traces or items")
        if self.looks is not None and (self.looks.ndim != 2 or len(self.looks) != len(self.items)):
            raise ValueError(
                f"looks {self.looks.shape} are not rows, one for each of {len(self.items)} items"
            )
        if np.any(self.weights < 0) or not np.all(np.isfinite(self.weights)):
            raise ValueError("weights of traces are finite and not negative")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Places:
        """int64 [traces]: items of each."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> Places:
        """int64 [items]: the trace of each item."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @property
    def ended(self) -> Places:
        """int64: the traces that called something and after whose last item nothing comes."""
        some = np.flatnonzero(self.lengths > 0)
        return some if self.settled is None else some[self.settled[self.offsets[1:][some] - 1]]

    def selected(self, rows: Places) -> TraceSet:
        """The traces with these numbers, in that order."""
        lengths = self.lengths[rows]
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        places = spans(self.offsets[rows], lengths)
        return TraceSet(
            items=self.items[places],
            success=self.success[places],
            offsets=offsets,
            outcomes=self.outcomes[rows],
            weights=self.weights[rows],
            groups=self.groups[rows],
            times_ms=self.times_ms[rows],
            texts=self.texts[places],
            end_texts=self.end_texts[rows],
            looks=None if self.looks is None else self.looks[places],
            settled=None if self.settled is None else self.settled[places],
        )

    def positions(self, first: int = 1) -> Places:
        """int64: the items with at least `first` items of their trace before them."""
        within = np.arange(len(self.items)) - self.offsets[self.owners]
        return np.flatnonzero(within >= first)

    def questions(self, first: int = 1) -> Places:
        """int64: those that are asked for. What came after an item of just now is no fair question: what has
        not come yet is none."""
        asked = self.positions(first)
        if self.settled is None:
            return asked
        begins = np.isin(asked, self.offsets[:-1])
        known: Places = asked[begins | self.settled[np.maximum(asked, 1) - 1]]
        return known

    def prefixes(self, positions: Places, points: Vectors | None = None) -> Prefixes:
        """What came before these items; `points` is the matrix whose rows `texts` names."""
        texts = None if points is None else _points(self.texts[positions], points)
        starts = self.offsets[self.owners[positions]]
        return Prefixes(
            self.items, starts, positions, texts, self.texts[positions], self._latest(starts, positions)
        )

    def whole(self, rows: Places, points: Vectors | None = None) -> Prefixes:
        """Some traces that called something, up to their end, with the text that was visible then."""
        told = self.end_texts[rows]
        texts = None if points is None else _points(told, points)
        starts, ends = self.offsets[:-1][rows], self.offsets[1:][rows]
        return Prefixes(self.items, starts, ends, texts, told, self._latest(starts, ends))

    def _latest(self, starts: Places, ends: Places) -> Vectors | None:
        """The look of the last item of each prefix, never of the one that comes; zeros where none is."""
        if self.looks is None:
            return None
        found = np.zeros((len(ends), self.looks.shape[1]), dtype=np.float32)
        some = ends > starts
        found[some] = self.looks[ends[some] - 1]
        return found

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Every column that is there, under its name."""
        columns = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: column for name, column in columns.items() if column is not None}


def _points(rows: Places, points: Vectors) -> Vectors:
    if len(points) == 0:
        return np.zeros((len(rows), points.shape[1]), dtype=np.float32)
    return np.where((rows == NO_TEXT)[:, None], np.float32(0), points[np.maximum(rows, 0)])


def success_by_ends(offsets: Places, outcomes: NDArray[np.float32]) -> NDArray[np.float32]:
    """float32 [items]: where it is known of traces alone how they went, the last item went so, others well.

    Args:
        offsets: int64 [traces + 1], as those of a `TraceSet`.
        outcomes: float32 [traces].
    """
    found = np.ones(offsets[-1], dtype=np.float32)
    some = np.diff(offsets) > 0
    found[offsets[1:][some] - 1] = outcomes[some]
    return found
