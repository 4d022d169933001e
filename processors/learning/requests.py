"""What is read of a request's text once, for every prefix that it is visible in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pml.processors.discovery.lexical import Lexical, counted
from pml.processors.discovery.words import clauses, words
from pml.processors.learning.duplicates import key_hash
from pml.processors.learning.grouping import Places, spans
from pml.processors.learning.titles import titles
from pml.processors.learning.word_scores import ScoredTexts, Scores, WordScores
from pml.processors.memory.embedding import Embedding, Vectors

# Different words of a text that are looked at one by one, the first ones.
WORDS_MOST = 256
_HASHES_KEPT = 65_536


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """Some texts beside every item of the vocabulary, each a row; what `evidence` looks at.

    `lexical` float32 [rows, size]: BM25 of each item's description ÷ the best of them, 0 to 1; `titled`
    likewise: how much of each item's name is said (`titles`). `clause_points`, `clause_lexical` and
    `clause_titled` are of the parts of a text that ask for one thing each; those of row i are at
    `offsets[i]:offsets[i + 1]`, at least one.
    """

    lexical: Scores
    titled: Scores
    clause_points: Vectors
    clause_lexical: Scores
    clause_titled: Scores
    offsets: Places


@dataclass(frozen=True, slots=True, eq=False)
class Requests:
    """Texts of requests, each a row; beside the items they are laid only where somebody asks (`compared`).

    `points` float32 [rows, dimensions]; `clause_points` likewise those of their clauses, of row i at
    `offsets[i]:offsets[i + 1]`. `words` int64: hashes of the words, each once, ascending; those of row i are
    at `word_offsets[i]:word_offsets[i + 1]`.
    """

    points: Vectors
    lexical: ScoredTexts
    titled: ScoredTexts
    clause_points: Vectors
    clause_lexical: ScoredTexts
    clause_titled: ScoredTexts
    offsets: Places
    words: Places
    word_offsets: Places

    def compared(self, rows: Places) -> Compared:
        """These rows, int64, beside every item: rows × size numbers, so some rows at a time."""
        counts = np.diff(self.offsets)[rows]
        clauses = spans(self.offsets[rows], counts)
        return Compared(
            lexical=self.lexical.rows(rows),
            titled=self.titled.rows(rows),
            clause_points=self.clause_points[clauses],
            clause_lexical=self.clause_lexical.rows(clauses),
            clause_titled=self.clause_titled.rows(clauses),
            offsets=np.cumsum([0, *counts], dtype=np.int64),
        )


class RequestReader:
    """Reads texts, and each of their clauses, to be compared with descriptions that stay as they are.

    Args:
        descriptions: one for each item of the vocabulary, by id; empty where there is none.
        embedding: makes the points.
    """

    def __init__(self, descriptions: Sequence[str], embedding: Embedding) -> None:
        size, lexical = len(descriptions), Lexical([counted(words(text)) for text in descriptions])
        self._lexical = WordScores(lexical.postings, size, np.float64, of_best=True)
        self._titles = WordScores(titles(descriptions), size, np.float32)
        self._embedding = embedding

    def read(self, texts: Sequence[str]) -> Requests:
        """A row for each text."""
        parts = [clauses(text) or [text] for text in texts]
        told = [part for each in parts for part in each]
        spoken, spoken_parts = [words(text) for text in texts], [words(part) for part in told]
        hashed = [_hashed_words(each) for each in spoken]
        return Requests(
            points=self._embedding.embed(texts),
            lexical=self._lexical.of(spoken),
            titled=self._titles.of(spoken),
            clause_points=self._embedding.embed(told),
            clause_lexical=self._lexical.of(spoken_parts),
            clause_titled=self._titles.of(spoken_parts),
            offsets=np.cumsum([0, *map(len, parts)], dtype=np.int64),
            words=np.array([word for each in hashed for word in each], dtype=np.int64),
            word_offsets=np.cumsum([0, *map(len, hashed)], dtype=np.int64),
        )


def _hashed_words(spoken: Sequence[str]) -> list[int]:
    return sorted(_hashed(word) for word in list(dict.fromkeys(spoken))[:WORDS_MOST])


@lru_cache(_HASHES_KEPT)
def _hashed(word: str) -> int:
    return key_hash(word)


def read_requests(texts: Sequence[str], descriptions: Sequence[str], embedding: Embedding) -> Requests:
    """A row for each text, to be compared with the descriptions of the items of the vocabulary."""
    return RequestReader(descriptions, embedding).read(texts)
