"""Hyperedges in flat arrays that can be edited."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.processors.learning.hypergraph import UNUSABLE, Edits, Ends, Hyperedge, Hypergraph
from tests.processors.learning.plain_hyperpaths import VERTICES, drawn_edges, hyperedges_of

EDGES = [Hyperedge((0, 1), (2,), 1.0), Hyperedge((), (1,), 2.0)]


def chained(ends: Ends, vertex: int) -> list[int]:
    found, position = [], int(ends.first[vertex])
    while position >= 0:
        found.append(int(ends.hyperedges[position]))
        position = int(ends.following[position])
    return sorted(found)


@settings(max_examples=50)
@given(st.lists(drawn_edges(4), max_size=5))
def test_what_is_added_in_parts_is_found_from_its_number_and_from_its_vertices(
    parts: list[list[Hyperedge]],
) -> None:
    graph = Hypergraph(VERTICES)
    for part in parts:
        graph.apply(Edits(added=tuple(part)))
    plain = [edge for part in parts for edge in part]
    assert hyperedges_of(graph) == plain
    for vertex in range(VERTICES):
        assert chained(graph.inputs, vertex) == [n for n, edge in enumerate(plain) if vertex in edge.inputs]
        assert sorted(graph.makers(vertex)) == [n for n, edge in enumerate(plain) if vertex in edge.outputs]


def test_a_vertex_named_twice_counts_once() -> None:
    assert Hypergraph(2, [Hyperedge((0, 0), (1, 1), 1)]).hyperedge(0) == Hyperedge((0,), (1,), 1.0)


def test_a_removed_hyperedge_keeps_its_number_and_can_come_back() -> None:
    graph = Hypergraph(3, EDGES)
    graph.apply(Edits(removed=(0,)))
    assert graph.hyperedge(0).weight == UNUSABLE
    graph.apply(Edits(weights={0: 4.0}))
    assert [edge.weight for edge in hyperedges_of(graph)] == [4.0, 2.0]


@pytest.mark.parametrize(
    "edits",
    [
        Edits(weights={2: 1.0}),
        Edits(weights={-1: 1.0}),
        Edits(weights={0: -1.0}),
        Edits(weights={0: float("nan")}),
        Edits(removed=(0, 0)),
        Edits(weights={0: 1.0}, removed=(0,)),
        Edits(added=(Hyperedge((3,), (0,), 1),)),
        Edits(added=(Hyperedge((-1,), (0,), 1),)),
        Edits(added=(Hyperedge((0,), (), 1),)),
    ],
)
def test_an_impossible_edit_is_refused_and_changes_nothing(edits: Edits) -> None:
    graph = Hypergraph(3, EDGES)
    version = graph.version
    with pytest.raises(ValueError, match=r"hyperedge|weight|vertices"):
        graph.apply(edits)
    assert hyperedges_of(graph) == EDGES
    assert graph.version == version
