"""What is read of a request's text once, for every prefix that it is visible in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pml.processors.discovery.lexical import Lexical, counted
from pml.processors.discovery.words import clauses, words
from pml.processors.learning.duplicates import key_hash
from pml.processors.learning.grouping import Places
from pml.processors.learning.titles import Titles
from pml.processors.memory.embedding import Embedding, Vectors

Scores = NDArray[np.float32]

# Different words of a text that are looked at one by one, the first ones.
WORDS_MOST = 256
_HASHES_KEPT = 65_536


@dataclass(frozen=True, slots=True, eq=False)
class Requests:
    """Texts of requests, each a row.

    `points` float32 [rows, dimensions]; `lexical` float32 [rows, size]: BM25 of each item's description ÷ the
    best of them, 0 to 1; `titled` likewise: how much of each item's name is said (`Titles`). `clause_points`,
    `clause_lexical` and `clause_titled` are the same for the parts of a text that ask for one thing each;
    those of row i are at `offsets[i]:offsets[i + 1]`, at least one. `words` int64: hashes of the words, each
    once, ascending; those of row i are at `word_offsets[i]:word_offsets[i + 1]`.
    """

    points: Vectors
    lexical: Scores
    titled: Scores
    clause_points: Vectors
    clause_lexical: Scores
    clause_titled: Scores
    offsets: Places
    words: Places
    word_offsets: Places


class RequestReader:
    """Compares texts, and each of their clauses, with descriptions that stay as they are.

    Args:
        descriptions: one for each item of the vocabulary, by id; empty where there is none.
        embedding: makes the points.
    """

    def __init__(self, descriptions: Sequence[str], embedding: Embedding) -> None:
        self._lexical = Lexical([counted(words(text)) for text in descriptions])
        self._titles = Titles(descriptions)
        self._size = len(descriptions)
        self._embedding = embedding

    def read(self, texts: Sequence[str]) -> Requests:
        """A row for each text."""
        parts = [clauses(text) or [text] for text in texts]
        told = [part for each in parts for part in each]
        spoken = [_hashed_words(text) for text in texts]
        return Requests(
            points=self._embedding.embed(texts),
            lexical=self._shares(texts),
            titled=self._titles.shares(texts),
            clause_points=self._embedding.embed(told),
            clause_lexical=self._shares(told),
            clause_titled=self._titles.shares(told),
            offsets=np.cumsum([0, *map(len, parts)], dtype=np.int64),
            words=np.array([word for each in spoken for word in each], dtype=np.int64),
            word_offsets=np.cumsum([0, *map(len, spoken)], dtype=np.int64),
        )

    def _shares(self, texts: Sequence[str]) -> Scores:
        found = np.zeros((len(texts), self._size), dtype=np.float32)
        for row, text in zip(found, texts, strict=True):
            scores = self._lexical.scores(words(text))
            row[:] = scores / max(1e-9, scores.max(initial=0.0))
        return found


def _hashed_words(text: str) -> list[int]:
    return sorted(_hashed(word) for word in list(dict.fromkeys(words(text)))[:WORDS_MOST])


@lru_cache(_HASHES_KEPT)
def _hashed(word: str) -> int:
    return key_hash(word)


def read_requests(texts: Sequence[str], descriptions: Sequence[str], embedding: Embedding) -> Requests:
    """A row for each text, compared with a description for each item of the vocabulary (`RequestReader`)."""
    return RequestReader(descriptions, embedding).read(texts)
