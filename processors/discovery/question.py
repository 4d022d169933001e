"""An intent as it is asked for: its words and points, as a whole and clause by clause."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pml.processors.discovery.words import clauses, words
from pml.processors.memory.embedding import Embedding, Vectors


@dataclass(frozen=True, slots=True)
class Question:
    """`points` has a row for the whole intent, then one for each clause; `words` likewise."""

    model: str
    words: tuple[tuple[str, ...], ...]
    points: Vectors

    @property
    def blank(self) -> bool:
        """Whether there is nothing to compare: no word, and no meaning that the model knows."""
        return not self.words[0] and not np.any(self.points[0])


def question(intent: str, embedding: Embedding) -> Question:
    """The intent, as the model of an index sees it."""
    texts = [intent, *clauses(intent)]
    return Question(embedding.name, tuple(tuple(words(text)) for text in texts), embedding.embed(texts))
