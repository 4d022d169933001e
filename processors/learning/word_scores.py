"""What the words of texts give items, added up for those texts alone that are looked at.

For all texts and all items at once it would not fit into memory: 20,000 texts with five clauses each, beside
5,000 items, are 5 GB.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pml.processors.learning.compiled import compiled
from pml.processors.learning.grouping import Places
from pml.processors.learning.vocabulary import Ids

Scores = NDArray[np.float32]
Postings = Mapping[str, tuple[ArrayLike, ArrayLike]]
"""Of each word the items that it gives something, each once, and how much."""

# The best of a text that says nothing is not divided by.
BEST_LEAST = 1e-9


class _Given(NamedTuple):
    """Word i gives `items[offsets[i]:offsets[i + 1]]` as much as `weights` says there."""

    offsets: Places
    items: Ids
    weights: NDArray[np.floating]


class _Said(NamedTuple):
    """Known words by number, int32, of each text once, ascending; those of row i from `offsets[i]` on."""

    words: Ids
    offsets: Places


class WordScores:
    """What each word gives each item, and stays as it is.

    Args:
        postings: of each word.
        size: of how many items.
        dtype: what sums are added up in.
        of_best: whether each sum is told as its share of its text's largest.
    """

    def __init__(
        self, postings: Postings, size: int, dtype: type[np.floating], *, of_best: bool = False
    ) -> None:
        # Ascending: a sum of floats depends on its order.
        known = sorted(postings)
        self.size, self.of_best = size, of_best
        self._numbers = {word: number for number, word in enumerate(known)}
        items = [np.asarray(postings[word][0], dtype=np.int32) for word in known]
        weights = [np.asarray(postings[word][1], dtype=dtype) for word in known]
        self.given = _Given(
            _offsets(items),
            np.concatenate([np.zeros(0, dtype=np.int32), *items]),
            np.concatenate([np.zeros(0, dtype=dtype), *weights]),
        )

    def of(self, spoken: Sequence[Sequence[str]]) -> ScoredTexts:
        """Texts, each as its words."""
        said = [sorted(self._numbers[word] for word in set(each) if word in self._numbers) for each in spoken]
        words = np.array([number for each in said for number in each], dtype=np.int32)
        return ScoredTexts(self, _Said(words, _offsets(said)))


@dataclass(frozen=True, slots=True, eq=False)
class ScoredTexts:
    """Texts and what their words give; the scores of a text are made whenever they are asked for."""

    scores: WordScores
    said: _Said

    def rows(self, rows: Places) -> Scores:
        """float32 [rows, size]: what each item gets of these texts, int64; words count once each."""
        found = np.zeros((len(rows), self.scores.size), dtype=np.float32)
        _add_up(self.said, rows, self.scores.given, self.scores.of_best, found)
        return found


def _offsets(each: Sequence[Sequence[int] | Ids]) -> Places:
    return np.cumsum([0, *map(len, each)], dtype=np.int64)


@compiled
def _add_up(said: _Said, rows: Places, given: _Given, of_best: bool, found: Scores) -> None:
    """Write what each item gets of each row, float32 [rows, size]."""
    sums = np.zeros(found.shape[1], dtype=given.weights.dtype)
    for place in range(len(rows)):
        sums[:] = 0
        for at in range(said.offsets[rows[place]], said.offsets[rows[place] + 1]):
            word = said.words[at]
            for key in range(given.offsets[word], given.offsets[word + 1]):
                sums[given.items[key]] += given.weights[key]
        best = 1.0
        if of_best:
            best = BEST_LEAST
            for item in range(len(sums)):
                best = max(best, sums[item])
        for item in range(len(sums)):
            found[place, item] = sums[item] / best
