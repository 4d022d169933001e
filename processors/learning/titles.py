"""How much of what a tool is called a text says: one that says all of it names the tool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pml.processors.discovery.lexical import rarity
from pml.processors.discovery.words import words

Scores = NDArray[np.float32]

# What a description begins with before this is the name in words (`discovery.documents`).
_NAME_ENDS = ". "


class Titles:
    """The names at the beginning of descriptions that stay as they are, numbered in the order given."""

    def __init__(self, descriptions: Sequence[str]) -> None:
        titles = [sorted(set(words(text.partition(_NAME_ENDS)[0]))) for text in descriptions]
        named_by = Counter(word for title in titles for word in title)
        rare = {word: rarity(len(titles), count) for word, count in named_by.items()}
        self._size = len(titles)
        self._postings: dict[str, list[tuple[int, float]]] = {word: [] for word in rare}
        for number, title in enumerate(titles):
            total = sum(rare[word] for word in title)
            for word in title:
                self._postings[word].append((number, rare[word] / total))

    def shares(self, texts: Sequence[str]) -> Scores:
        """float32 [texts, size]: the share of each name's words that a text has, rare words counting more."""
        found = np.zeros((len(texts), self._size), dtype=np.float32)
        for row, text in zip(found, texts, strict=True):
            # Sorted: a sum of floats depends on its order.
            for word in sorted(set(words(text))):
                for number, share in self._postings.get(word, ()):
                    row[number] += share
        return found
