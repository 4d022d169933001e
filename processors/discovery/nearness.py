"""How near each document's meaning is to a point, and which are near enough to look at."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pml.processors.memory.embedding import Vectors
from pml.processors.memory.index import VectorIndex, new_index

Numbers = NDArray[np.int64]

# A graph in which more than this share is gone is built anew.
GONE_SHARE = 0.5


class Nearness:
    """Cosines in standard deviations above their mean over all documents, for all or for some of them.

    Mean and deviation come from the first two moments of the points, and cost the same for many
    documents as for few.
    """

    def __init__(self, points: Vectors) -> None:
        self._points = points
        exact = points.astype(np.float64)
        count = max(1, len(points))
        self._mean = exact.sum(axis=0) / count
        self._moments = exact.T @ exact / count

    def standardised(self, asked: Vectors, numbers: Numbers | None) -> NDArray[np.float64]:
        """A row for each point asked, a column for each document of `numbers`, or for every one."""
        points = self._points if numbers is None else self._points[numbers]
        exact = asked.astype(np.float64)
        mean = exact @ self._mean
        variance = np.einsum("qd,de,qe->q", exact, self._moments, exact) - mean**2
        deviation = np.sqrt(np.maximum(variance, 1e-12))
        found: NDArray[np.float64] = ((asked @ points.T) - mean[:, None]) / deviation[:, None]
        return found


class Graph:
    """An approximate index that documents come into and leave, by id."""

    def __init__(self, dimensions: int) -> None:
        self._index: VectorIndex = new_index(dimensions)
        self._slots: list[str] = []
        self._of: dict[str, int] = {}

    @property
    def worn(self) -> bool:
        """Whether so much of it is gone that it should be built anew."""
        return len(self._of) < (1 - GONE_SHARE) * len(self._slots)

    def put(self, ids: list[str], points: Vectors) -> None:
        """Take documents in, each in place of the one of its id."""
        self._index.add(points)
        for name in ids:
            self._of[name] = len(self._slots)
            self._slots.append(name)

    def remove(self, name: str) -> None:
        """Leave a document out of what is found."""
        self._of.pop(name, None)

    def nearest(self, point: Vectors, k: int) -> list[str]:
        """About the k nearest, the nearest first; fewer where some of them are gone."""
        found = self._index.nearest(point, k)
        names = ((self._slots[slot], slot) for slot, _ in found)
        return [name for name, slot in names if self._of.get(name) == slot]
