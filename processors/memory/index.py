"""The index port: which points lie nearest. One adapter looks at all, the other follows a graph (HNSW)."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from pml.processors.memory.embedding import Vectors

# The spike, §2.2: m = 16, ef_construction = 64.
LINKS = 16
EF_CONSTRUCTION = 64
# Looked at in a search: more is slower and misses less; at 64 of 10,000 points the nearest five are found.
EF_SEARCH = 64
CAPACITY_FIRST = 1_024


class VectorIndex(Protocol):
    """Points of length 1, numbered in the order in which they were added."""

    def __len__(self) -> int:
        """How many points there are."""

    def add(self, points: Vectors) -> None:
        """Take in rows; their numbers go on from the last."""

    def nearest(self, point: Vectors, k: int) -> list[tuple[int, float]]:
        """Numbers and cosines of the k points nearest to one, the nearest first; ties by number."""


class ExactIndex:
    """Compares with every point: what the other one is measured by, and what serves where it is missing."""

    def __init__(self, dimensions: int) -> None:
        self._points: Vectors = np.zeros((0, dimensions), dtype=np.float32)

    def __len__(self) -> int:
        return len(self._points)

    def add(self, points: Vectors) -> None:
        """Take in rows."""
        self._points = np.concatenate((self._points, points))

    def nearest(self, point: Vectors, k: int) -> list[tuple[int, float]]:
        """The k nearest, the nearest first."""
        cosines = self._points @ point
        order = np.argsort(-cosines, kind="stable")[:k]
        return [(int(number), float(cosines[number])) for number in order]


class HnswIndex:
    """hnswlib's graph (Malkov & Yashunin 2016), built by one thread and so the same every time."""

    def __init__(self, dimensions: int) -> None:
        self._index: Any = import_module("hnswlib").Index(space="cosine", dim=dimensions)
        self._index.init_index(
            max_elements=CAPACITY_FIRST, ef_construction=EF_CONSTRUCTION, M=LINKS, random_seed=1
        )
        self._index.set_num_threads(1)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, points: Vectors) -> None:
        """Take in rows."""
        if not len(points):
            return
        needed = self._count + len(points)
        if needed > self._index.get_max_elements():
            self._index.resize_index(2 * needed)
        self._index.add_items(points, np.arange(self._count, needed))
        self._count = needed

    def nearest(self, point: Vectors, k: int) -> list[tuple[int, float]]:
        """About the k nearest, the nearest first."""
        most = min(k, self._count)
        if not most:
            return []
        self._index.set_ef(max(EF_SEARCH, 2 * most))
        try:
            numbers, distances = self._index.knn_query(point, k=most)
        except RuntimeError:
            # Among many points that are nearly one, the graph may not reach as many as were asked for.
            return self._compared(point, most)
        pairs = zip(numbers[0].tolist(), distances[0].tolist(), strict=True)
        return sorted(((number, 1 - distance) for number, distance in pairs), key=lambda p: (-p[1], p[0]))

    def _compared(self, point: Vectors, k: int) -> list[tuple[int, float]]:
        twin = ExactIndex(self._index.dim)
        twin.add(np.asarray(self._index.get_items(np.arange(self._count)), dtype=np.float32))
        return twin.nearest(point, k)


def new_index(dimensions: int) -> VectorIndex:
    """An empty index: HNSW, or the exact one where hnswlib is not installed (it has no wheels for 3.13)."""
    return HnswIndex(dimensions) if find_spec("hnswlib") else ExactIndex(dimensions)
