"""Hyperpaths after edits, beside hyperpaths that are searched from scratch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.processors.learning.hypergraph import Edits, Hyperedge, Hypergraph
from pml.processors.learning.hyperpath_update import CROSSOVER, update
from pml.processors.learning.hyperpaths import Cost, HyperpathTree, shortest_hyperpaths
from tests.processors.learning.plain_hyperpaths import (
    VERTICES,
    costs,
    drawn_edges,
    executed,
    hyperedges,
    hyperedges_of,
    plain_distances,
    vertex,
    weights,
)

ALWAYS_REPAIR = 1_000.0


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Hyperedge], list[Edits]]:
    edges, edits = draw(drawn_edges()), []
    count = len(edges)
    for _ in range(draw(st.integers(1, 5))):
        numbers = draw(st.lists(st.integers(0, count - 1), max_size=3, unique=True)) if count else []
        removed = tuple(number for number in numbers if draw(st.booleans()))
        changed = {number: draw(weights) for number in numbers if number not in removed}
        edits.append(Edits(changed, removed, tuple(draw(st.lists(hyperedges, max_size=2)))))
        count += len(edits[-1].added)
    return edges, edits


def check(tree: HyperpathTree, sources: set[int], cost: Cost) -> None:
    edges = hyperedges_of(tree.graph)
    assert tree.distances.tolist() == plain_distances(tree.graph.vertices, edges, sources, cost)
    for target in range(tree.graph.vertices):
        path = tree.path(target)
        if path is not None:
            assert executed(edges, path.hyperedges, sources, cost)[target] == path.cost


@settings(max_examples=120)
@given(histories(), st.sets(vertex, max_size=3), costs)
def test_after_every_edit_all_is_as_if_searched_from_scratch(
    history: tuple[list[Hyperedge], list[Edits]], sources: set[int], cost: Cost
) -> None:
    edges, edits = history
    tree = shortest_hyperpaths(Hypergraph(VERTICES, edges), sources, cost)
    for some in edits:
        assert not update(tree, some, ALWAYS_REPAIR).recomputed or not len(edges)
        check(tree, sources, cost)


def random_edges(draws: np.random.Generator, count: int, vertices: int) -> list[Hyperedge]:
    return [
        Hyperedge(
            tuple(draws.integers(0, vertices, draws.integers(1, 4)).tolist()),
            tuple(draws.integers(0, vertices, draws.integers(1, 3)).tolist()),
            float(draws.integers(0, 9)),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("cost", ["sum", "rank", "bottleneck"])
def test_long_histories_on_a_larger_graph_end_where_recomputing_ends(cost: Cost) -> None:
    draws = np.random.default_rng(5)
    graph = Hypergraph(150, random_edges(draws, 500, 150))
    tree = shortest_hyperpaths(graph, range(8), cost)
    for _ in range(150):
        numbers = draws.choice(len(graph), draws.integers(0, 12), replace=False).tolist()
        changed = {number: float(draws.integers(0, 9)) for number in numbers[1:]}
        update(tree, Edits(changed, tuple(numbers[:1]), tuple(random_edges(draws, 2, 150))), ALWAYS_REPAIR)
        fresh = shortest_hyperpaths(graph, range(8), cost)
        assert np.array_equal(tree.distances, fresh.distances)
    check(tree, set(range(8)), cost)


def test_a_ring_of_weight_zero_does_not_keep_itself_alive() -> None:
    ring = [Hyperedge((0,), (1,), 1.0), Hyperedge((1,), (2,), 0.0), Hyperedge((2,), (1,), 0.0)]
    tree = shortest_hyperpaths(Hypergraph(3, ring), [0])
    assert update(tree, Edits(removed=(0,)), ALWAYS_REPAIR).vertices == 2
    assert tree.distances.tolist() == [0, np.inf, np.inf]


def test_a_dearer_step_that_another_one_still_outweighs_changes_nothing() -> None:
    chain = [Hyperedge((0,), (1,), 5.0), Hyperedge((1,), (2,), 1.0)]
    tree = shortest_hyperpaths(Hypergraph(3, chain), [0], "bottleneck")
    assert update(tree, Edits(weights={1: 4.0}), ALWAYS_REPAIR).vertices == 0
    assert update(tree, Edits(weights={1: 6.0}), ALWAYS_REPAIR).vertices == 1
    assert tree.distances.tolist() == [0, 5, 6]


def test_few_edits_are_repaired_and_many_are_recomputed() -> None:
    edges = [Hyperedge((n,), (n + 1,), 1.0) for n in range(1_000)]
    tree = shortest_hyperpaths(Hypergraph(1_001, edges), [0])
    few = update(tree, Edits(weights={999: 2.0}))
    assert (few.recomputed, few.vertices) == (False, 1)
    over = int(CROSSOVER * 1_000) + 1
    many = update(tree, Edits(weights=dict.fromkeys(range(over), 3.0)))
    assert many.recomputed
    assert tree.distance(1_000) == 3 * over + (999 - over) + 2


def test_an_impossible_edit_is_refused_and_the_tree_goes_on() -> None:
    tree = shortest_hyperpaths(Hypergraph(2, [Hyperedge((0,), (1,), 1.0)]), [0])
    for wrong in (Edits(weights={1: 1.0}), Edits(weights={-1: 1.0}), Edits(weights={0: -1.0})):
        with pytest.raises(ValueError, match=r"hyperedge|weight"):
            update(tree, wrong)
    assert tree.distance(1) == 1


def test_a_tree_whose_graph_was_edited_behind_its_back_is_not_updated() -> None:
    tree = shortest_hyperpaths(Hypergraph(2, [Hyperedge((0,), (1,), 1.0)]), [0])
    tree.graph.apply(Edits(weights={0: 2.0}))
    with pytest.raises(ValueError, match="edited without this tree"):
        update(tree, Edits(weights={0: 3.0}))
