"""What is described as the request asks comes next: nearness of texts, and nothing counted.

A prefix is the point of its visible text and of the last item's description, an item that of its own;
softmax over the cosines makes probabilities. The share of the last item (below 0: not the same again) and
the temperature are those under which the training traces are likeliest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.candidates import Probabilities, fitting
from pml.processors.learning.dot_products import dot_products
from pml.processors.learning.sampling import sampled
from pml.processors.learning.traces import Prefixes, TraceSet, Vectors
from pml.processors.learning.vocabulary import UNKNOWN
from pml.processors.memory.embedding import unit

LAST_SHARES = (-0.5, 0.0, 0.5, 1.0)
TEMPERATURES = (0.02, 0.05, 0.1, 0.2, 0.5)
# Prefixes that the two are chosen on, drawn from all.
FITTED_MOST = 512


@dataclass(frozen=True, slots=True, eq=False)
class Cosine:
    """`points` float32 [size, dimensions], of length 1 (the origin: no text, never named); two numbers."""

    points: Vectors
    last_share: float
    temperature: float

    @classmethod
    def fit(cls, traces: TraceSet, points: Vectors, texts: Vectors, seed: int) -> Cosine:
        """Choose the two numbers.

        Args:
            traces: what to learn from; their `texts` name rows of `texts`.
            points: float32 [size, dimensions], the description of each item of the vocabulary.
            texts: float32 [rows, dimensions], what was visible of requests.
            seed: of the prefixes that they are chosen on, where there are more than `FITTED_MOST`.
        """
        asked = traces.positions()
        asked = asked[sampled(len(asked), FITTED_MOST, seed)]
        prefixes, targets = traces.prefixes(asked, texts), traces.items[asked]
        named = points[targets].any(axis=1) & (targets != UNKNOWN)

        def loss(numbers: tuple[float, float]) -> float:
            found = cls(points, *numbers).probabilities(prefixes)[np.flatnonzero(named), targets[named]]
            return -float(np.log(np.maximum(found, 1e-300)).sum())

        return cls(points, *min(product(LAST_SHARES, TEMPERATURES), key=loss))

    @property
    def size(self) -> int:
        """That of its vocabulary."""
        return len(self.points)

    def probabilities(self, prefixes: Prefixes) -> Probabilities:
        """float64 [prefixes, size]; zeros where nothing is known of what was asked for."""
        known = np.any(self.points, axis=1, keepdims=True)[:, 0]
        known[UNKNOWN] = False
        asked = self._asked(prefixes)
        odds = np.exp(dot_products(asked, self.points) / self.temperature - 1 / self.temperature)
        odds *= known * np.any(asked, axis=1, keepdims=True)
        return np.asarray(odds / np.maximum(odds.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """`points`, and `numbers`: the share of the last item and the temperature."""
        return {"points": self.points, "numbers": np.array([self.last_share, self.temperature])}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Cosine:
        """What `to_arrays` wrote.

        Raises:
            ValueError: an array is missing or does not fit: train the model again.
        """
        numbers = fitting(arrays, "numbers", np.float64, 1)
        return cls(fitting(arrays, "points", np.float32, 2), float(numbers[0]), float(numbers[1]))

    def _asked(self, prefixes: Prefixes) -> Vectors:
        last = prefixes.windows(1, start=UNKNOWN, none=UNKNOWN)[:, 0]
        ends = np.float32(self.last_share) * self.points[last] * (last != UNKNOWN)[:, None]
        return unit(ends if prefixes.texts is None else prefixes.texts + ends)
