"""The compiled heart of shortest hyperpaths: Dijkstra's order over hyperedges, from scratch or after edits.

From scratch it is SBT-Dijkstra (Gallo et al. 1993): a hyperedge is looked at when the last of its inputs
is settled. After edits only what they touch is settled again, as Ramalingam and Reps (1996) do for
superior functions and Gao et al. (arXiv 1202.0082, DR-DSP) for hyperpaths. All three costs are superior
functions (Knuth 1977): no output is nearer than an input, so the nearest vertex that waits is final.

**Cycles**, those of weight 0 too: a vertex takes another maker only when that makes it strictly nearer,
and those whose maker leads to a raised hyperedge lose it before anybody looks for a new one. So makers
never form a cycle.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.compiled import compiled
from pml.processors.learning.hypergraph import Ends, Numbers, Weights
from pml.processors.learning.vertex_heap import pop, push

NO_MAKER, SOURCE = -1, -2
SUM, RANK, BOTTLENECK = 0, 1, 2


class Graph(NamedTuple):
    """What of a hypergraph is searched."""

    inputs: Ends
    outputs: Ends
    weights: Weights


class Labels(NamedTuple):
    """What a search knows of each vertex; and `waiting`, of each hyperedge: its inputs that are not settled.

    `makers`: the hyperedge that gives the vertex at its distance, or `NO_MAKER`, or `SOURCE`. `settled`:
    whether its distance was final at some time and is still an upper bound. `heap`, `places` and `touched`
    are working room.
    """

    distances: Weights
    makers: Numbers
    settled: NDArray[np.bool_]
    waiting: Numbers
    heap: Numbers
    places: Numbers
    touched: Numbers


class Changed(NamedTuple):
    """Hyperedges whose weight rose, and whose fell; those from `added` on are new, and in `lowered` too."""

    raised: Numbers
    lowered: Numbers
    added: int


@compiled
def _offered(graph: Graph, labels: Labels, cost: int, hyperedge: int) -> float:
    """What an output costs by a hyperedge whose inputs are all settled."""
    total = largest = 0.0
    for position in range(graph.inputs.starts[hyperedge], graph.inputs.starts[hyperedge + 1]):
        distance = labels.distances[graph.inputs.vertices[position]]
        total += distance
        largest = max(largest, distance)
    weight = graph.weights[hyperedge]
    if cost == SUM:
        return float(weight + total)
    return float(weight + largest if cost == RANK else max(weight, largest))


@compiled
def _relax(graph: Graph, labels: Labels, cost: int, hyperedge: int) -> None:
    """Offer a hyperedge to its outputs; its inputs are all settled."""
    offered = _offered(graph, labels, cost, hyperedge)
    for position in range(graph.outputs.starts[hyperedge], graph.outputs.starts[hyperedge + 1]):
        vertex = graph.outputs.vertices[position]
        if offered < labels.distances[vertex]:
            labels.distances[vertex] = offered
            labels.makers[vertex] = hyperedge
            push(labels.heap, labels.places, labels.distances, vertex)


@compiled
def _settle(graph: Graph, labels: Labels, cost: int) -> None:
    """Settle what waits in the heap, and what follows from it, the nearest first."""
    while labels.heap[0] > 0:
        vertex = pop(labels.heap, labels.places, labels.distances)
        newly = not labels.settled[vertex]
        labels.settled[vertex] = True
        position = graph.inputs.first[vertex]
        while position >= 0:
            hyperedge = graph.inputs.hyperedges[position]
            if newly:
                labels.waiting[hyperedge] -= 1
            if labels.waiting[hyperedge] == 0:
                _relax(graph, labels, cost, hyperedge)
            position = graph.inputs.following[position]


@compiled
def compute(graph: Graph, labels: Labels, cost: int, sources: Numbers, count: int) -> None:
    """Shortest hyperpaths from scratch over hyperedges 0 … count − 1; `heap` and `places` must be empty."""
    labels.distances[:] = np.inf
    labels.makers[:] = NO_MAKER
    labels.settled[:] = False
    for vertex in sources:
        labels.distances[vertex] = 0.0
        labels.makers[vertex] = SOURCE
        push(labels.heap, labels.places, labels.distances, vertex)
    for hyperedge in range(count):
        labels.waiting[hyperedge] = graph.inputs.starts[hyperedge + 1] - graph.inputs.starts[hyperedge]
        if labels.waiting[hyperedge] == 0:
            _relax(graph, labels, cost, hyperedge)
    _settle(graph, labels, cost)


@compiled
def _unsettle(graph: Graph, labels: Labels, cost: int, raised: Numbers) -> int:
    """Take their distance from all vertices whose hyperpath got dearer: `touched[:count]`.

    No distance changes in the first loop, so what a raised hyperedge offers is compared with what it offered:
    for a bottleneck it is often the same.
    """
    count = done = 0
    for hyperedge in raised:
        if labels.waiting[hyperedge] == 0:
            count = _orphan(graph, labels, hyperedge, count, _offered(graph, labels, cost, hyperedge))
    while done < count:
        vertex = labels.touched[done]
        done += 1
        labels.distances[vertex] = np.inf
        labels.settled[vertex] = False
        position = graph.inputs.first[vertex]
        while position >= 0:
            hyperedge = graph.inputs.hyperedges[position]
            labels.waiting[hyperedge] += 1
            count = _orphan(graph, labels, hyperedge, count, np.inf)
            position = graph.inputs.following[position]
    return count


@compiled
def _orphan(graph: Graph, labels: Labels, hyperedge: int, count: int, offered: float) -> int:
    """Take the maker from those that a hyperedge made nearer than it makes them now."""
    for position in range(graph.outputs.starts[hyperedge], graph.outputs.starts[hyperedge + 1]):
        vertex = graph.outputs.vertices[position]
        if labels.makers[vertex] == hyperedge and labels.distances[vertex] < offered:
            labels.makers[vertex] = NO_MAKER
            labels.touched[count] = vertex
            count += 1
    return count


@compiled
def repair(graph: Graph, labels: Labels, cost: int, changed: Changed) -> int:
    """Make labels right after edits that the graph has already; returns how many vertices lost theirs."""
    count = _unsettle(graph, labels, cost, changed.raised)
    for hyperedge in changed.lowered:
        if hyperedge >= changed.added:
            labels.waiting[hyperedge] = 0
            for position in range(graph.inputs.starts[hyperedge], graph.inputs.starts[hyperedge + 1]):
                if not labels.settled[graph.inputs.vertices[position]]:
                    labels.waiting[hyperedge] += 1
    for place in range(count):
        position = graph.outputs.first[labels.touched[place]]
        while position >= 0:
            hyperedge = graph.outputs.hyperedges[position]
            if labels.waiting[hyperedge] == 0:
                _relax(graph, labels, cost, hyperedge)
            position = graph.outputs.following[position]
    for hyperedge in changed.lowered:
        if labels.waiting[hyperedge] == 0:
            _relax(graph, labels, cost, hyperedge)
    _settle(graph, labels, cost)
    return int(count)
