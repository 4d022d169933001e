"""The best hyperpaths, beside a list of all of them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.processors.learning.best_hyperpaths import best_hyperpaths
from pml.processors.learning.hypergraph import Hyperedge, Hypergraph
from pml.processors.learning.hyperpaths import Cost
from tests.processors.learning.plain_hyperpaths import (
    VERTICES,
    costs,
    drawn_edges,
    executed,
    hyperedges_of,
    plain_hyperpaths,
    vertex,
)

# Two ways to 1, two from there to 2, and a way back that no path may use.
LADDER = [
    Hyperedge((0,), (1,), 1.0),
    Hyperedge((0,), (1,), 3.0),
    Hyperedge((1,), (2,), 1.0),
    Hyperedge((1,), (2,), 4.0),
    Hyperedge((2,), (1,), 0.0),
]


@settings(max_examples=60)
@given(drawn_edges(9), st.sets(vertex, min_size=1, max_size=2), st.integers(1, 6), st.integers(1, 4), costs)
def test_the_best_are_the_first_of_all_that_there_are(
    edges: list[Hyperedge], sources: set[int], most: int, longest: int, cost: Cost
) -> None:
    target, graph = VERTICES - 1, Hypergraph(VERTICES, edges)
    best = best_hyperpaths(graph, sources, target, most, cost=cost, hyperedges_most=longest)
    everything = plain_hyperpaths(edges, sources, target, cost)
    short = {used: total for used, total in everything.items() if len(used) <= longest}
    found = {frozenset(path.hyperedges): path.cost for path in best.paths}
    assert best.complete
    assert len(found) == len(best.paths)
    assert [path.cost for path in best.paths] == sorted(short.values())[:most]
    assert found.items() <= short.items()
    for path in best.paths:
        executed(edges, path.hyperedges, sources, cost)
    assert hyperedges_of(graph) == edges


def test_ways_come_by_growing_cost_until_there_is_no_other() -> None:
    best = best_hyperpaths(Hypergraph(3, LADDER), [0], 2, 10)
    assert [path.hyperedges for path in best.paths] == [(0, 2), (1, 2), (0, 3), (1, 3)]
    assert [path.cost for path in best.paths] == [2, 4, 5, 7]
    assert best.complete


def test_where_searches_run_out_the_first_ones_are_given_and_it_says_so() -> None:
    best = best_hyperpaths(Hypergraph(3, LADDER), [0], 2, 10, searches_most=4)
    assert [path.cost for path in best.paths] == [2, 4, 5]
    assert not best.complete


def test_to_what_cannot_be_reached_there_is_no_way() -> None:
    assert best_hyperpaths(Hypergraph(3, LADDER[:2]), [0], 2, 3).paths == ()


def test_a_source_is_reached_by_doing_nothing_and_in_no_other_way() -> None:
    assert [path.hyperedges for path in best_hyperpaths(Hypergraph(3, LADDER), [1], 1, 3).paths] == [()]


@pytest.mark.parametrize("bound", ["most", "hyperedges_most", "searches_most"])
def test_every_bound_is_at_least_one(bound: str) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        best_hyperpaths(Hypergraph(3, LADDER), [0], 2, **{"most": 1, bound: 0})  # type: ignore[arg-type]


def test_a_choice_further_up_stays_made_while_those_below_it_are_changed() -> None:
    """By 1 and 2, each with a dear alternative, or by 3, which is cheaper than these: none hides another."""
    edges = [
        Hyperedge((0,), (1,), 1.0),
        Hyperedge((0,), (1,), 10.0),
        Hyperedge((1,), (2,), 1.0),
        Hyperedge((1,), (2,), 100.0),
        Hyperedge((2,), (4,), 1.0),
        Hyperedge((0,), (3,), 5.0),
        Hyperedge((3,), (4,), 2.0),
    ]
    best = best_hyperpaths(Hypergraph(5, edges), [0], 4, 9)
    assert [path.cost for path in best.paths] == [3, 7, 12, 102, 111]
    assert best.paths[1].hyperedges == (5, 6)
