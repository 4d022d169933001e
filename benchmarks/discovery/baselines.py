"""What a search would be without PML: TF-IDF, cosines of the same embedding, the sum of their z-scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pml.processors.discovery.words import words
from pml.processors.memory.embedding import Vectors, unit

Scores = NDArray[np.float32]


def tf_idf(documents: Sequence[str], intents: Sequence[str]) -> Scores:
    """Cosines of counts times smoothed inverse document frequency; a row for each intent."""
    counted = [Counter(words(text)) for text in documents]
    places = {word: place for place, word in enumerate(sorted({word for each in counted for word in each}))}
    rows = _matrix(counted, places)
    rarity = np.log((1 + len(documents)) / (1 + (rows > 0).sum(axis=0))) + 1
    known = _matrix([Counter(words(text)) for text in intents], places)
    return unit((known * rarity).astype(np.float32)) @ unit((rows * rarity).astype(np.float32)).T


def cosines(documents: Vectors, intents: Vectors) -> Scores:
    """A row for each intent."""
    return intents @ documents.T


def fused(one: Scores, other: Scores) -> Scores:
    """The sum of z-scores, each over all documents of an intent."""
    return _standardised(one) + _standardised(other)


def _standardised(scores: Scores) -> Scores:
    deviations = scores.std(axis=1, keepdims=True)
    found: Scores = (scores - scores.mean(axis=1, keepdims=True)) / np.maximum(deviations, 1e-9)
    return found


def _matrix(counted: Sequence[Counter[str]], places: dict[str, int]) -> Scores:
    found = np.zeros((len(counted), len(places)), dtype=np.float32)
    for row, counts in zip(found, counted, strict=True):
        for word, count in counts.items():
            if word in places:
                row[places[word]] = count
    return found
