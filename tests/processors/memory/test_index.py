"""What every index must hold; the exact one is the twin that the other is compared with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pml.processors.memory import index
from pml.processors.memory.embedding import Vectors, unit
from pml.processors.memory.index import ExactIndex, HnswIndex, VectorIndex, new_index

ADAPTERS: list[Callable[[int], VectorIndex]] = [ExactIndex, HnswIndex]
every_adapter = pytest.mark.parametrize("adapter", ADAPTERS)
DIMENSIONS = 32


def points(count: int, seed: int) -> Vectors:
    drawn = np.random.default_rng(seed).normal(size=(count, DIMENSIONS))
    return unit(drawn.astype(np.float32))


@every_adapter
def test_an_empty_index_finds_nothing(adapter: Callable[[int], VectorIndex]) -> None:
    empty = adapter(DIMENSIONS)
    empty.add(points(0, 1))
    assert len(empty) == 0
    assert empty.nearest(points(1, 1)[0], 5) == []


@every_adapter
def test_numbers_go_on_from_the_last(adapter: Callable[[int], VectorIndex]) -> None:
    found, rows = adapter(DIMENSIONS), points(3_000, 2)
    for part in np.array_split(rows, 7):
        found.add(part)
    assert len(found) == 3_000
    for number in (0, 999, 2_999):
        nearest, cosine = found.nearest(rows[number], 1)[0]
        assert nearest == number
        assert cosine == pytest.approx(1, abs=1e-4)


@every_adapter
def test_the_nearest_come_first_with_their_cosines(adapter: Callable[[int], VectorIndex]) -> None:
    found, rows, asked = adapter(DIMENSIONS), points(200, 3), points(1, 4)[0]
    found.add(rows)
    nearest = found.nearest(asked, 10)
    assert [cosine for _, cosine in nearest] == sorted((c for _, c in nearest), reverse=True)
    for number, cosine in nearest:
        assert cosine == pytest.approx(float(rows[number] @ asked), abs=1e-4)
    assert len(found.nearest(asked, 1_000)) == 200


def test_the_graph_finds_nearly_all_that_comparing_finds() -> None:
    rows, asked = points(5_000, 5), points(100, 6)
    twin, graph = ExactIndex(DIMENSIONS), HnswIndex(DIMENSIONS)
    for found in (twin, graph):
        found.add(rows)
    shared = [
        len({number for number, _ in twin.nearest(point, 5)} & {n for n, _ in graph.nearest(point, 5)})
        for point in asked
    ]
    assert sum(shared) / (5 * len(asked)) > 0.9


def test_where_the_graph_is_torn_all_points_are_compared() -> None:
    """Clusters of points that are nearly one: the graph does not reach from each to each."""
    clusters = [unit(point + 1e-4 * points(100, 10 + number)) for number, point in enumerate(points(14, 9))]
    twin, graph = ExactIndex(DIMENSIONS), HnswIndex(DIMENSIONS)
    for cluster in clusters:
        twin.add(cluster)
        graph.add(cluster)
    asked = points(1, 30)[0]
    expected = dict(twin.nearest(asked, 1_400))
    assert dict(graph.nearest(asked, 1_400)) == pytest.approx(expected, abs=1e-4)


def test_the_graph_is_the_same_every_time() -> None:
    rows, asked = points(2_000, 7), points(20, 8)
    graphs = [HnswIndex(DIMENSIONS), HnswIndex(DIMENSIONS)]
    for graph in graphs:
        graph.add(rows)
    assert all(graphs[0].nearest(point, 5) == graphs[1].nearest(point, 5) for point in asked)


def test_where_hnswlib_is_missing_the_exact_index_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(new_index(DIMENSIONS), HnswIndex)
    monkeypatch.setattr(index, "find_spec", lambda name: None)
    assert isinstance(new_index(DIMENSIONS), ExactIndex)
