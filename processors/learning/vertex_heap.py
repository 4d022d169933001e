"""A binary heap of vertices by their distance, in two arrays, in which a vertex can move up.

`heap[0]` is how many there are, `heap[1]` the nearest; `places[vertex]` is where it lies, 0 where it does
not. Of equally distant vertices the smaller number comes first, so the order depends on nothing but the
distances.
"""

from __future__ import annotations

from pml.processors.learning.compiled import compiled
from pml.processors.learning.hypergraph import Numbers, Weights


@compiled
def push(heap: Numbers, places: Numbers, distances: Weights, vertex: int) -> None:
    """Put a vertex in, or move it to where its smaller distance belongs."""
    place = places[vertex]
    if place == 0:
        heap[0] += 1
        place = heap[0]
    while place > 1:
        above = heap[place // 2]
        if distances[above] < distances[vertex] or (distances[above] == distances[vertex] and above < vertex):
            break
        heap[place] = above
        places[above] = place
        place //= 2
    heap[place] = vertex
    places[vertex] = place


@compiled
def pop(heap: Numbers, places: Numbers, distances: Weights) -> int:
    """Take the nearest vertex out; there must be one."""
    nearest, moved = heap[1], heap[heap[0]]
    heap[0] -= 1
    places[nearest] = 0
    if nearest == moved:
        return int(nearest)
    place = 1
    while 2 * place <= heap[0]:
        child = 2 * place
        if child < heap[0]:
            left, right = heap[child], heap[child + 1]
            if distances[right] < distances[left] or (distances[right] == distances[left] and right < left):
                child += 1
        below = heap[child]
        if distances[moved] < distances[below] or (distances[moved] == distances[below] and moved < below):
            break
        heap[place] = below
        places[below] = place
        place = child
    heap[place] = moved
    places[moved] = place
    return int(nearest)
