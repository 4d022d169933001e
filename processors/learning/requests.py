"""What is read of a request's text once, for every prefix that it is visible in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pml.processors.discovery.lexical import Lexical, counted
from pml.processors.discovery.words import clauses, words
from pml.processors.learning.grouping import Places
from pml.processors.memory.embedding import Embedding, Vectors

Scores = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Requests:
    """Texts of requests, each a row.

    `points` float32 [rows, dimensions]; `lexical` float32 [rows, size]: BM25 of each item's description ÷ the
    best of them, 0 to 1. `clause_points` and `clause_lexical` are the same for the parts of a text that ask
    for one thing each; those of row i are at `offsets[i]:offsets[i + 1]`, at least one.
    """

    points: Vectors
    lexical: Scores
    clause_points: Vectors
    clause_lexical: Scores
    offsets: Places


class RequestReader:
    """Compares texts, and each of their clauses, with descriptions that stay as they are.

    Args:
        descriptions: one for each item of the vocabulary, by id; empty where there is none.
        embedding: makes the points.
    """

    def __init__(self, descriptions: Sequence[str], embedding: Embedding) -> None:
        self._lexical = Lexical([counted(words(text)) for text in descriptions])
        self._size = len(descriptions)
        self._embedding = embedding

    def read(self, texts: Sequence[str]) -> Requests:
        """A row for each text."""
        parts = [clauses(text) or [text] for text in texts]
        told = [part for each in parts for part in each]
        return Requests(
            points=self._embedding.embed(texts),
            lexical=self._shares(texts),
            clause_points=self._embedding.embed(told),
            clause_lexical=self._shares(told),
            offsets=np.cumsum([0, *map(len, parts)], dtype=np.int64),
        )

    def _shares(self, texts: Sequence[str]) -> Scores:
        found = np.zeros((len(texts), self._size), dtype=np.float32)
        for row, text in zip(found, texts, strict=True):
            scores = self._lexical.scores(words(text))
            row[:] = scores / max(1e-9, scores.max(initial=0.0))
        return found


def read_requests(texts: Sequence[str], descriptions: Sequence[str], embedding: Embedding) -> Requests:
    """A row for each text, compared with a description for each item of the vocabulary (`RequestReader`)."""
    return RequestReader(descriptions, embedding).read(texts)
