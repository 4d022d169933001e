"""Shortest hyperpaths: the cheapest way to something when every step needs all of its inputs (DESIGN §7)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pml.processors.learning.hypergraph import Hypergraph, Weights
from pml.processors.learning.hyperpath_search import BOTTLENECK, RANK, SOURCE, SUM, Graph, Labels, compute

Cost = Literal["sum", "rank", "bottleneck"]
_COSTS = {"sum": SUM, "rank": RANK, "bottleneck": BOTTLENECK}


@dataclass(frozen=True, slots=True)
class Hyperpath:
    """A way to `target`: `hyperedges` by number, each after those that give its inputs; none for a source."""

    target: int
    cost: float
    hyperedges: tuple[int, ...]


class HyperpathTree:
    """A shortest hyperpath from the sources to every vertex that can be reached.

    It holds the graph that it was made of. Edits go through `hyperpath_update.update`, which keeps both
    right; a tree whose graph was edited in another way refuses to answer.
    """

    def __init__(self, graph: Hypergraph, sources: Iterable[int], cost: Cost) -> None:
        """Use `shortest_hyperpaths`."""
        self._graph, self._cost = graph, _COSTS[cost]
        self._sources = np.array(sorted(set(sources)), dtype=np.int64)
        if len(self._sources) and not (self._sources[0] >= 0 and self._sources[-1] < graph.vertices):
            raise ValueError(f"vertices are numbered from 0 to {graph.vertices - 1}")
        self._labels = _room(graph)
        self.recompute()

    @property
    def graph(self) -> Hypergraph:
        """What it was made of."""
        return self._graph

    @property
    def cost(self) -> int:
        """The number of its cost in `hyperpath_search`."""
        return self._cost

    @property
    def distances(self) -> Weights:
        """float64 [vertices], a copy: the cost of a shortest hyperpath, infinite where there is none."""
        self.check_current()
        return self._labels.distances.copy()

    def distance(self, vertex: int) -> float:
        """The cost of a shortest hyperpath to it; infinite if there is none."""
        self._check_vertex(vertex)
        return float(self._labels.distances[vertex])

    def path(self, target: int) -> Hyperpath | None:
        """A shortest hyperpath in an order that can be executed; None if the target cannot be reached."""
        self._check_vertex(target)
        if not np.isfinite(self._labels.distances[target]):
            return None
        return Hyperpath(target, float(self._labels.distances[target]), self._ordered(target))

    def searched(self) -> tuple[Graph, Labels]:
        """What the compiled search works on, with room for every hyperedge of the graph."""
        missing = len(self._graph.weights) - len(self._labels.waiting)
        if missing > 0:
            room = np.zeros(missing, dtype=np.int64)
            self._labels = self._labels._replace(waiting=np.concatenate([self._labels.waiting, room]))
        return Graph(self._graph.inputs, self._graph.outputs, self._graph.weights), self._labels

    def recompute(self) -> None:
        """Search from scratch, whatever was known."""
        compute(*self.searched(), self._cost, self._sources, len(self._graph))
        self.mark_current()

    def mark_current(self) -> None:
        """Its labels are those of the graph as it is now."""
        self._version = self._graph.version

    def check_current(self) -> None:
        """Raises ValueError if the graph was edited behind its back."""
        if self._version != self._graph.version:
            raise ValueError("the hypergraph was edited without this tree: use update, or recompute")

    def _check_vertex(self, vertex: int) -> None:
        self.check_current()
        if not 0 <= vertex < self._graph.vertices:
            raise ValueError(f"vertices are numbered from 0 to {self._graph.vertices - 1}")

    def _ordered(self, target: int) -> tuple[int, ...]:
        """Post-order over makers; they form no cycle (`hyperpath_search`), so an end comes."""
        ordered: dict[int, None] = {}
        stack = [(target, False)]
        while stack:
            vertex, inputs_done = stack.pop()
            maker = int(self._labels.makers[vertex])
            if maker == SOURCE or maker in ordered:
                continue
            if inputs_done:
                ordered[maker] = None
                continue
            stack.append((vertex, True))
            stack.extend((needed, False) for needed in reversed(self._graph.hyperedge(maker).inputs))
        return tuple(ordered)


def shortest_hyperpaths(graph: Hypergraph, sources: Iterable[int], cost: Cost = "sum") -> HyperpathTree:
    """Shortest hyperpaths from what is there already; cycles are no obstacle.

    Args:
        graph: its weights say how dear each hyperedge is.
        sources: vertices that are there; their cost is 0.
        cost: of an output, from its hyperedge's weight w and the costs of all inputs (0 for none of them).
            `sum`: w + their sum. What two inputs share is paid for twice: paying once is NP-hard (Ausiello
            et al.). `rank`: w + the largest, as when inputs are made in parallel.
            `bottleneck`: the largest of w and them all: the weakest step decides.

    Returns:
        The tree of them. O(size of the graph + vertices · log(vertices)).

    Raises:
        ValueError: a source is no vertex.
    """
    return HyperpathTree(graph, sources, cost)


def _room(graph: Hypergraph) -> Labels:
    vertices = graph.vertices
    return Labels(
        distances=np.empty(vertices),
        makers=np.empty(vertices, dtype=np.int64),
        settled=np.empty(vertices, dtype=np.bool_),
        waiting=np.zeros(len(graph.weights), dtype=np.int64),
        heap=np.zeros(vertices + 1, dtype=np.int64),
        places=np.zeros(vertices, dtype=np.int64),
        touched=np.empty(vertices, dtype=np.int64),
    )
