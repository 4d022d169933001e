"""Shortest hyperpaths, beside every hyperedge offering again and again until nothing gets nearer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pml.processors.learning.hypergraph import Edits, Hyperedge, Hypergraph
from pml.processors.learning.hyperpaths import Cost, shortest_hyperpaths
from tests.processors.learning.plain_hyperpaths import (
    VERTICES,
    costs,
    drawn_edges,
    executed,
    plain_distances,
    vertex,
)

RING = [
    Hyperedge((0,), (1,), 0.0),
    Hyperedge((1,), (2,), 0.0),
    Hyperedge((2,), (1,), 0.0),
    Hyperedge((2, 3), (3,), 0.0),
]


@settings(max_examples=150)
@given(drawn_edges(), st.sets(vertex, max_size=3), costs)
@example(RING, {0}, "sum")
def test_distances_and_paths_are_right_whatever_the_cycles(
    edges: list[Hyperedge], sources: set[int], cost: Cost
) -> None:
    tree = shortest_hyperpaths(Hypergraph(VERTICES, edges), sources, cost)
    assert tree.distances.tolist() == plain_distances(VERTICES, edges, sources, cost)
    for target in range(VERTICES):
        path = tree.path(target)
        assert (path is None) == np.isinf(tree.distance(target))
        if path is not None:
            there = executed(edges, path.hyperedges, sources, cost)
            assert there[target] == path.cost == tree.distance(target)
            assert len(set(path.hyperedges)) == len(path.hyperedges)


def test_a_hyperedge_waits_for_all_of_its_inputs() -> None:
    edges = [Hyperedge((0, 1), (2,), 1.0)]
    assert shortest_hyperpaths(Hypergraph(3, edges), [0]).path(2) is None
    assert shortest_hyperpaths(Hypergraph(3, edges), [0, 1]).distance(2) == 1


def test_what_two_inputs_share_is_in_the_path_once() -> None:
    edges = [
        Hyperedge((0,), (1,), 1.0),
        Hyperedge((1,), (2,), 1.0),
        Hyperedge((1,), (3,), 1.0),
        Hyperedge((2, 3), (4,), 1.0),
    ]
    path = shortest_hyperpaths(Hypergraph(5, edges), [0]).path(4)
    assert path is not None
    assert path.hyperedges == (0, 1, 2, 3)
    assert path.cost == 5


def test_a_source_needs_nothing() -> None:
    path = shortest_hyperpaths(Hypergraph(1, [Hyperedge((), (0,), 0.0)]), [0]).path(0)
    assert path is not None
    assert (path.cost, path.hyperedges) == (0, ())


def test_a_tree_whose_graph_was_edited_behind_its_back_does_not_answer() -> None:
    graph = Hypergraph(2, [Hyperedge((0,), (1,), 1.0)])
    tree = shortest_hyperpaths(graph, [0])
    graph.apply(Edits(weights={0: 2.0}))
    with pytest.raises(ValueError, match="edited without this tree"):
        tree.distance(1)
    tree.recompute()
    assert tree.distance(1) == 2


@pytest.mark.parametrize("wrong", [-1, 2])
def test_what_is_no_vertex_is_refused(wrong: int) -> None:
    graph = Hypergraph(2)
    with pytest.raises(ValueError, match="vertices are numbered"):
        shortest_hyperpaths(graph, [wrong])
    with pytest.raises(ValueError, match="vertices are numbered"):
        shortest_hyperpaths(graph, [0]).path(wrong)


def test_a_graph_of_some_size_is_searched_as_by_brute_force() -> None:
    draws = np.random.default_rng(1)
    edges = [
        Hyperedge(
            tuple(draws.integers(0, 200, draws.integers(1, 4)).tolist()),
            (int(draws.integers(0, 200)),),
            float(draws.integers(0, 50)),
        )
        for _ in range(900)
    ]
    tree = shortest_hyperpaths(Hypergraph(200, edges), range(10), "rank")
    assert tree.distances.tolist() == plain_distances(200, edges, set(range(10)), "rank")
