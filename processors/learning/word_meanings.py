"""Which items the words of a request ask for, learned as one learns which words translate which.

IBM model 1 (Brown et al. 1993) by expectation maximisation: each item of a trace was asked for by one of the
words of its request, and how likely by which is found in turns with what each word asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.candidates import Probabilities, fitting
from pml.processors.learning.compiled import compiled
from pml.processors.learning.grouping import Places, spans, summed
from pml.processors.learning.requests import Requests
from pml.processors.learning.traces import NO_TEXT, Prefixes, TraceSet
from pml.processors.learning.vocabulary import UNKNOWN, Ids

Column = NDArray[np.float64]

ROUNDS = 6
# A word asks for nothing as often, on top of what was counted: what was seen once is not believed wholly.
NOTHING = 1.0
# What only one request says is no word of many, and stays out of the model.
REQUESTS_LEAST = 2
SHARE_LEAST = 1e-3
# Pairs of a word and an item of one trace that are looked at: those of the latest traces.
PAIRS_MOST = 4_000_000
HISTORY = 16


@dataclass(frozen=True, slots=True, eq=False)
class WordMeanings:
    """`words` int64 ascending, hashes as in `Requests`; word i asks for `items[offsets[i]:offsets[i + 1]]`.

    `items` int32, ascending for each word, and `shares` float64: how often it asks for each.
    """

    size: int
    words: Places
    offsets: Places
    items: Ids
    shares: Column

    @classmethod
    def fit(cls, traces: TraceSet, size: int, requests: Requests) -> WordMeanings:
        """Learn of these traces, each with what was visible at its last item."""
        kept = _kept(traces, requests)
        last = traces.texts[traces.offsets[1:][kept] - 1]
        said = np.diff(requests.word_offsets)[last]
        spoken = requests.words[spans(requests.word_offsets[last], said)]
        words, times = np.unique(spoken, return_counts=True)
        words = words[times >= REQUESTS_LEAST]
        owners, items = _called(traces, kept, size)
        spoken = requests.words[spans(requests.word_offsets[last[owners]], said[owners])]
        pairs = np.repeat(np.arange(len(owners)), said[owners])
        known = np.isin(spoken, words)
        told = np.searchsorted(words, spoken[known]) * size + items[pairs[known]]
        keys, which = np.unique(told, return_inverse=True)
        weights = traces.weights[kept[owners]].astype(np.float64)
        shares = _learned(keys // max(1, size), which, pairs[known], weights)
        keys, shares = keys[shares >= SHARE_LEAST], shares[shares >= SHARE_LEAST]
        used, of = np.unique(keys // max(1, size), return_inverse=True)
        offsets = np.searchsorted(of, np.arange(len(used) + 1)).astype(np.int64)
        return cls(size, words[used], offsets, (keys % max(1, size)).astype(np.int32), shares)

    def signals(self, prefixes: Prefixes, requests: Requests) -> Mapping[str, Probabilities]:
        """float64 [prefixes, size] each, 0 where no text is visible.

        `meant`: the shares of all words of the request, added up; `meant_still`: the same, of each word only
        as far as the items called so far are not what it asks for.
        """
        found = _Meant(*(np.zeros((len(prefixes), self.size)) for _ in _Meant._fields))
        rows = prefixes.text_rows
        if rows is not None and len(requests.word_offsets) > 1:
            told, there = np.maximum(rows, 0), rows != NO_TEXT
            starts, ends = requests.word_offsets[told], requests.word_offsets[told + 1]
            said = _Said(requests.words, starts, np.where(there, ends, starts))
            called = prefixes.windows(HISTORY, start=UNKNOWN, none=UNKNOWN)
            _added(said, _Known(self.words, self.offsets, self.items, self.shares), called, found)
        return found._asdict()

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Its columns, and `size` [1]."""
        columns = ("words", "offsets", "items", "shares")
        return {"size": np.array([self.size])} | {name: getattr(self, name) for name in columns}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> WordMeanings:
        """What `to_arrays` wrote.

        Raises:
            ValueError: an array is missing or does not fit: train the model again.
        """
        return cls(
            int(fitting(arrays, "size", np.int64, 1)[0]),
            fitting(arrays, "words", np.int64, 1),
            fitting(arrays, "offsets", np.int64, 1),
            fitting(arrays, "items", np.int32, 1),
            fitting(arrays, "shares", np.float64, 1),
        )


class _Said(NamedTuple):
    """Words, int64, and where those of each prefix start and end, int64 [prefixes] each."""

    words: Places
    starts: Places
    ends: Places


class _Known(NamedTuple):
    """The columns of `WordMeanings`, as compiled code takes them."""

    words: Places
    offsets: Places
    items: Ids
    shares: Column


class _Meant(NamedTuple):
    """float64 [rows, size] each."""

    meant: Probabilities
    meant_still: Probabilities


def _kept(traces: TraceSet, requests: Requests) -> Places:
    """int64: traces that called something for a request that was visible, the latest ones, ascending."""
    last = np.maximum(traces.offsets[1:] - 1, 0)
    rows = traces.texts[last] if len(traces.items) else np.full(len(traces), NO_TEXT)
    kept = np.flatnonzero((traces.lengths > 0) & (traces.weights > 0) & (rows != NO_TEXT))
    latest = kept[np.argsort(traces.times_ms[kept], kind="stable")][::-1]
    pairs = np.cumsum(np.diff(requests.word_offsets)[rows[latest]] * traces.lengths[latest])
    return np.sort(latest[pairs <= PAIRS_MOST])


def _called(traces: TraceSet, kept: Places, size: int) -> tuple[Places, Places]:
    """int64 each: places in `kept` and items that were called there, each once a trace."""
    lengths = traces.lengths[kept]
    items = traces.items[spans(traces.offsets[kept], lengths)].astype(np.int64)
    keys = np.unique(np.repeat(np.arange(len(kept)), lengths) * size + items)
    owners, called = np.divmod(keys, max(1, size))
    return owners[called != UNKNOWN], called[called != UNKNOWN]


def _learned(of_words: Places, which: Places, pairs: Places, weights: Column) -> Column:
    """float64: how often a word asks for an item, of each key.

    Args:
        of_words: int64 [keys]: the word of each.
        which: int64 [n]: the key of a word beside an item in one trace.
        pairs: int64 [n]: number of the item in that trace.
        weights: float64 [items of traces].
    """
    words = int(of_words.max(initial=-1)) + 1
    shares = np.ones(len(of_words))
    for _ in range(ROUNDS):
        told = shares[which]
        told = told / summed(told, pairs, len(weights))[pairs] * weights[pairs]
        counts = summed(told, which, len(of_words))
        shares = counts / (summed(counts, of_words, words)[of_words] + NOTHING)
    return shares


@compiled
def _added(said: _Said, known: _Known, called: Ids, found: _Meant) -> None:
    """Add up what the words of each row ask for, for histories int32 [rows, places]."""
    for row in range(len(called)):
        for place in range(said.starts[row], said.ends[row]):
            word = said.words[place]
            at = np.searchsorted(known.words, word)
            if at == len(known.words) or known.words[at] != word:
                continue
            most, served = 0.0, 0.0
            for key in range(known.offsets[at], known.offsets[at + 1]):
                most = max(most, known.shares[key])
                if known.shares[key] > served and np.any(called[row] == known.items[key]):
                    served = known.shares[key]
            for key in range(known.offsets[at], known.offsets[at + 1]):
                found.meant[row, known.items[key]] += known.shares[key]
                found.meant_still[row, known.items[key]] += known.shares[key] * (1 - served / most)
