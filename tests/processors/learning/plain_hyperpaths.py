"""Hyperpaths by brute force: what the compiled search must agree with."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from hypothesis import strategies as st

from pml.processors.learning.hypergraph import Hyperedge, Hypergraph
from pml.processors.learning.hyperpaths import Cost

VERTICES = 6
NEVER = float("inf")

# Whole weights: every sum is exact, so that equal means equal. 0 and 1 make cycles of weight 0 and many ties.
weights = st.one_of(st.integers(0, 1), st.integers(0, 9)).map(float)
vertex = st.integers(0, VERTICES - 1)


def sides(least: int, most: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(vertex, min_size=least, max_size=most, unique=True).map(tuple)


hyperedges = st.builds(Hyperedge, sides(0, 3), sides(1, 2), weights)
costs = st.sampled_from(["sum", "rank", "bottleneck"])


def offered(cost: Cost, weight: float, inputs: Sequence[float]) -> float:
    if cost == "sum":
        return weight + sum(inputs)
    largest = max(inputs, default=0.0)
    return weight + largest if cost == "rank" else max(weight, largest)


def hyperedges_of(graph: Hypergraph) -> list[Hyperedge]:
    return [graph.hyperedge(number) for number in range(len(graph))]


def plain_distances(vertices: int, edges: Sequence[Hyperedge], sources: set[int], cost: Cost) -> list[float]:
    """Every hyperedge offers again and again, until nothing gets nearer."""
    distances = [0.0 if vertex in sources else NEVER for vertex in range(vertices)]
    while True:
        before = list(distances)
        for edge in edges:
            offer = offered(cost, edge.weight, [distances[vertex] for vertex in edge.inputs])
            for vertex in edge.outputs:
                distances[vertex] = min(distances[vertex], offer)
        if distances == before:
            return distances


def plain_hyperpaths(
    edges: Sequence[Hyperedge], sources: set[int], target: int, cost: Cost
) -> dict[frozenset[int], float]:
    """Every choice of a hyperedge for every vertex: the sets that the target needs, and their costs."""
    free = [vertex for vertex in range(VERTICES) if vertex not in sources]
    options = [[n for n, edge in enumerate(edges) if vertex in edge.outputs] or [-1] for vertex in free]
    found: dict[frozenset[int], float] = {}
    for choice in product(*options):
        chosen = dict(zip(free, choice, strict=True))
        used: set[int] = set()
        total = _cost(edges, chosen, (target,), cost, used)
        if total < NEVER:
            found[frozenset(used)] = min(total, found.get(frozenset(used), NEVER))
    return found


def _cost(
    edges: Sequence[Hyperedge], chosen: dict[int, int], path: tuple[int, ...], cost: Cost, used: set[int]
) -> float:
    """Of the last vertex of a path down from the target; a vertex below itself has no cost."""
    vertex = path[-1]
    if vertex not in chosen:
        return 0.0
    if vertex in path[:-1] or chosen[vertex] < 0:
        return NEVER
    used.add(chosen[vertex])
    edge = edges[chosen[vertex]]
    inputs = [_cost(edges, chosen, (*path, needed), cost, used) for needed in edge.inputs]
    return offered(cost, edge.weight, inputs)


def executed(
    edges: Sequence[Hyperedge], order: Sequence[int], sources: set[int], cost: Cost
) -> dict[int, float]:
    """What is there after these hyperedges, in this order, and what it cost; each must find its inputs."""
    there = dict.fromkeys(sources, 0.0)
    for number in order:
        edge = edges[number]
        offer = offered(cost, edge.weight, [there[vertex] for vertex in edge.inputs])
        for vertex in edge.outputs:
            there[vertex] = min(there.get(vertex, NEVER), offer)
    return there


def drawn_edges(most: int = 12) -> st.SearchStrategy[list[Hyperedge]]:
    return st.lists(hyperedges, max_size=most)
