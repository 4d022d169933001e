"""The embedding port: texts become points, and similar texts lie close (Epic 10).

An adapter is any object with this protocol; `tests/processors/memory/embedding_contract.py` says what it
must hold. The one here needs no model and no network.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import log
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


class Embedding(Protocol):
    """Deterministic: the same text is the same point in every process. Points have length 1.

    Several threads may ask one at once: discovery and predictions share it.
    """

    @property
    def name(self) -> str:
        """Adapter and version: points of different names cannot be compared."""

    @property
    def dimensions(self) -> int:
        """Numbers in a point."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """A row for each text, float32; a text without a word is the origin."""


class HashedNgrams:
    """Words and their character trigrams, hashed into signed buckets (Weinberger et al. 2009).

    A word counts 1 + log(how often), its trigrams once and itself twice. CRC-32 gives bucket and sign,
    because it is the same everywhere and fast. Lexical: it knows no synonyms.
    """

    name = "hashed-ngrams-1"
    dimensions = 256

    def embed(self, texts: Sequence[str]) -> Vectors:
        """A row for each text, float32; a text without a word is the origin."""
        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            buckets: list[int] = []
            weights: list[float] = []
            for word, count in Counter(_WORD.findall(text.casefold())).items():
                places, signs = _hashed(word, self.dimensions)
                buckets += places
                weights += [sign * (1 + log(count)) for sign in signs]
            row += np.bincount(buckets, weights, minlength=self.dimensions) if buckets else 0
        return unit(rows)


def cosine(point: Vectors, other: Vectors) -> float:
    """How near two points of length 1 are; of many at once the last digits differ with their number."""
    return float(np.dot(point.astype(np.float64), other.astype(np.float64)))


def unit(rows: Vectors) -> Vectors:
    """The rows at length 1; the origin stays where it is."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    points: Vectors = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return points


_WORD = re.compile(r"\w+")
_WORD_WEIGHT = 2.0
_WORDS_KEPT = 32_768


@lru_cache(_WORDS_KEPT)
def _hashed(word: str, dimensions: int) -> tuple[list[int], list[float]]:
    """Buckets and signed weights of a word: its trigrams, and itself."""
    framed = f" {word} "
    codes = [zlib.crc32(framed[at : at + 3].encode()) for at in range(len(framed) - 2)]
    whole = zlib.crc32(f"word {word}".encode())
    signs = [_sign(code) for code in codes]
    return [code % dimensions for code in (*codes, whole)], [*signs, _WORD_WEIGHT * _sign(whole)]


def _sign(code: int) -> float:
    return 1.0 if code & 0x8000_0000 else -1.0
