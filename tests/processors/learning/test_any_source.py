"""Hyperpaths when one input is enough."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from pml.processors.learning.any_source import any_source_relaxation
from pml.processors.learning.hypergraph import Hyperedge, Hypergraph
from pml.processors.learning.hyperpaths import Cost, shortest_hyperpaths
from tests.processors.learning.plain_hyperpaths import NEVER, VERTICES, costs, drawn_edges, offered, vertex


def plain(edges: list[Hyperedge], sources: set[int], cost: Cost) -> list[float]:
    """Every hyperedge offers what its nearest input makes possible, until nothing gets nearer."""
    distances = [0.0 if number in sources else NEVER for number in range(VERTICES)]
    for _ in range(VERTICES):
        for edge in edges:
            nearest = [min(distances[needed] for needed in edge.inputs)] if edge.inputs else []
            for given_one in edge.outputs:
                distances[given_one] = min(distances[given_one], offered(cost, edge.weight, nearest))
    return distances


@settings(max_examples=60)
@given(drawn_edges(), st.sets(vertex, max_size=3), costs)
def test_one_input_is_enough_and_nothing_gets_dearer(
    edges: list[Hyperedge], sources: set[int], cost: Cost
) -> None:
    graph = Hypergraph(VERTICES, edges)
    relaxed = any_source_relaxation(graph)
    found = shortest_hyperpaths(relaxed.graph, sources, cost).distances
    assert found.tolist() == plain(edges, sources, cost)
    assert (found <= shortest_hyperpaths(graph, sources, cost).distances).all()


def test_a_way_can_be_told_in_the_numbers_of_the_hyperedges_it_comes_from() -> None:
    relaxed = any_source_relaxation(
        Hypergraph(4, [Hyperedge((0, 1), (2,), 1.0), Hyperedge((2, 0), (3,), 2.0)])
    )
    assert relaxed.origins == (0, 0, 1, 1)
    path = shortest_hyperpaths(relaxed.graph, [1]).path(3)
    assert path is not None
    assert [relaxed.origins[number] for number in path.hyperedges] == [0, 1]
