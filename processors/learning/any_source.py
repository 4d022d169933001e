"""The any-source relaxation: hyperpaths when one input of a hyperedge is enough.

Its costs are never above those with all inputs, and where it finds no way there is none. What it finds may
not be executable: it says what is near, not what can be run.
"""

from __future__ import annotations

from dataclasses import dataclass

from pml.processors.learning.hypergraph import Hyperedge, Hypergraph


@dataclass(frozen=True, slots=True)
class AnySource:
    """`graph` has a hyperedge for each input of each hyperedge; `origins` says of which one, by number."""

    graph: Hypergraph
    origins: tuple[int, ...]


def any_source_relaxation(graph: Hypergraph) -> AnySource:
    """The same vertices and weights, with each hyperedge usable as soon as one of its inputs is there.

    It is an ordinary hypergraph, a copy: everything that searches, updates or lists hyperpaths works on
    it. Hyperedges without inputs stay as they are.
    """
    single, origins = [], []
    for number in range(len(graph)):
        hyperedge = graph.hyperedge(number)
        alternatives: list[tuple[int, ...]] = [(vertex,) for vertex in hyperedge.inputs]
        for inputs in alternatives or [()]:
            single.append(Hyperedge(inputs, hyperedge.outputs, hyperedge.weight))
            origins.append(number)
    return AnySource(Hypergraph(graph.vertices, single), tuple(origins))
