"""The k best hyperpaths to a target (Nielsen, Andersen and Pretolani 2005, back-branching).

A hyperpath is a choice: which hyperedge makes each vertex that it needs. The best one splits all others into
classes: those that share its last choices up to one, from the target backwards, and differ in that one.
The best of each class is found by barring hyperedges, so one tree, updated from class to class, serves
them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

from pml.processors.learning.hypergraph import Edits, Hyperedge, Hypergraph
from pml.processors.learning.hyperpath_update import update
from pml.processors.learning.hyperpaths import Cost, Hyperpath, shortest_hyperpaths

SEARCHES_MOST = 10_000
HYPEREDGES_MOST = 500


@dataclass(frozen=True, slots=True)
class BestHyperpaths:
    """The cheapest first, no two with the same hyperedges. `complete` is False where the searches ran out.

    What is there is right in either case: the cheapest ones, without a gap.
    """

    paths: tuple[Hyperpath, ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class _Class:
    """All ways without the barred hyperedges; the choice for fixed vertices is the only one that is left."""

    barred: frozenset[int]
    fixed: frozenset[int]


def best_hyperpaths(
    graph: Hypergraph,
    sources: Iterable[int],
    target: int,
    most: int,
    *,
    cost: Cost = "sum",
    hyperedges_most: int = HYPEREDGES_MOST,
    searches_most: int = SEARCHES_MOST,
) -> BestHyperpaths:
    """Up to `most` hyperpaths to the target, by growing cost; the graph is not changed.

    Args:
        graph, sources, cost: as for `shortest_hyperpaths`.
        target: the vertex wanted.
        most: how many, at least 1.
        hyperedges_most: those with more hyperedges are passed over.
        searches_most: how many classes may be searched; each hyperedge of a path that is passed or given
        makes one.

    Raises:
        ValueError: a source or the target is no vertex, or a bound is below 1.
    """
    if min(most, hyperedges_most, searches_most) < 1:
        raise ValueError("every bound is at least 1")
    search = _Search(graph, sources, target, cost)
    queue: list[tuple[float, int, Hyperpath, _Class]] = []
    found: dict[frozenset[int], Hyperpath] = {}
    search.put(queue, _Class(frozenset(), frozenset()))
    while queue and len(found) < most:
        _, _, path, of = heappop(queue)
        given = search.original(path)
        if len(given.hyperedges) <= hyperedges_most:
            found.setdefault(frozenset(given.hyperedges), given)
        if len(found) == most:
            break
        for narrower in search.classes(path, of):
            if search.searches == searches_most:
                return BestHyperpaths(tuple(found.values()), complete=False)
            search.put(queue, narrower)
    return BestHyperpaths(tuple(found.values()), complete=True)


class _Search:
    """A graph of its own whose hyperedges have one output each: a hyperedge is a choice for a vertex."""

    def __init__(self, graph: Hypergraph, sources: Iterable[int], target: int, cost: Cost) -> None:
        single, self._origins = [], []
        for number in range(len(graph)):
            hyperedge = graph.hyperedge(number)
            for output in hyperedge.outputs:
                single.append(Hyperedge(hyperedge.inputs, (output,), hyperedge.weight))
                self._origins.append(number)
        self._single, self._target = single, target
        self._tree = shortest_hyperpaths(Hypergraph(graph.vertices, single), sources, cost)
        self._barred: frozenset[int] = frozenset()
        self.searches = 0

    def put(self, queue: list[tuple[float, int, Hyperpath, _Class]], of: _Class) -> None:
        """The best way of this class, if it has one; of equally dear ones the first found comes first."""
        back = {number: self._single[number].weight for number in sorted(self._barred - of.barred)}
        update(self._tree, Edits(weights=back, removed=tuple(sorted(of.barred - self._barred))))
        self._barred = of.barred
        self.searches += 1
        path = self._tree.path(self._target)
        if path is not None:
            heappush(queue, (path.cost, self.searches, path, of))

    def classes(self, path: Hyperpath, of: _Class) -> Iterator[_Class]:
        """What is left of a class without its best way, in parts that share nothing."""
        barred, fixed = of.barred, of.fixed
        for chosen in reversed(path.hyperedges):
            vertex = self._single[chosen].outputs[0]
            if vertex in fixed:
                continue
            yield _Class(barred | {chosen}, fixed)
            barred |= {other for other in self._tree.graph.makers(vertex) if other != chosen}
            fixed |= {vertex}

    def original(self, path: Hyperpath) -> Hyperpath:
        """The same way, by the numbers of the graph that was given."""
        numbers = dict.fromkeys(self._origins[number] for number in path.hyperedges)
        return Hyperpath(path.target, path.cost, tuple(numbers))
