"""How well the words of a text fit each document: BM25 (Robertson & Zaragoza 2009) over postings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import log1p

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]

# The field's usual ones. How often a question repeats a word does not count.
SATURATION = 1.2
LENGTH_SHARE = 0.75


class Lexical:
    """The postings of documents that stay as they are, numbered in the order given."""

    def __init__(self, documents: Sequence[Mapping[str, int]]) -> None:
        self._count = len(documents)
        lengths = np.array([sum(words.values()) for words in documents], dtype=np.float64)
        mean = float(lengths.mean()) if self._count and lengths.any() else 1.0
        self._norms = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * lengths / mean)
        self._postings = {word: self._weighed(places) for word, places in _places(documents).items()}

    @property
    def postings(self) -> Mapping[str, tuple[NDArray[np.int64], Scores]]:
        """Of each word the documents that have it, ascending, and what it adds to the score of each."""
        return self._postings

    def scores(self, words: Sequence[str]) -> Scores:
        """BM25 of every document; zeros where no word is known."""
        found = np.zeros(self._count, dtype=np.float64)
        # Sorted: a sum of floats depends on its order.
        for word in sorted(set(words)):
            posting = self._postings.get(word)
            if posting is not None:
                numbers, weights = posting
                found[numbers] += weights
        return found

    def _weighed(self, places: Mapping[int, int]) -> tuple[NDArray[np.int64], Scores]:
        numbers = np.fromiter(places.keys(), dtype=np.int64, count=len(places))
        counts = np.fromiter(places.values(), dtype=np.float64, count=len(places))
        rare = rarity(self._count, len(places))
        return numbers, rare * counts * (SATURATION + 1) / (counts + self._norms[numbers])


def rarity(documents: int, with_word: int) -> float:
    """Inverse document frequency: above zero for every word, also for one that most documents have."""
    return log1p((documents - with_word + 0.5) / (with_word + 0.5))


def counted(words: Sequence[str]) -> Mapping[str, int]:
    """How often each word comes."""
    return Counter(words)


def _places(documents: Sequence[Mapping[str, int]]) -> dict[str, dict[int, int]]:
    places: dict[str, dict[int, int]] = {}
    for number, words in enumerate(documents):
        for word, count in words.items():
            places.setdefault(word, {})[number] = count
    return places
