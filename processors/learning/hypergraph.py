"""A directed hypergraph that can be edited: hyperedges that need all their inputs and give all their outputs.

A tool is a hyperedge from what it requires to what it gives (a B-hypergraph where it gives one thing; Gallo,
Longo, Pallottino and Nguyen 1993). A hyperedge without inputs can be used at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.compiled import compiled

Numbers = NDArray[np.int64]
Weights = NDArray[np.float64]

NONE = -1
# What no search may use; removing a hyperedge gives it this weight.
UNUSABLE = float("inf")
# Ends of hyperedges, hyperedges and vertices: at most 32 bytes each, so 0.5 GiB in all.
ENDS_MOST = 1 << 24


@dataclass(frozen=True, slots=True)
class Hyperedge:
    """From vertices that are all needed to vertices that are all given; a `weight` ≥ 0 says how dear."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    weight: float


@dataclass(frozen=True, slots=True)
class Edits:
    """Changes to a hypergraph that count together. `weights` and `removed` name hyperedges by number.

    What is added gets the next numbers in this order. A removed one keeps its number, and a weight brings it
    back.
    """

    weights: Mapping[int, float] = field(default_factory=dict)
    removed: tuple[int, ...] = ()
    added: tuple[Hyperedge, ...] = ()

    def __len__(self) -> int:
        return len(self.weights) + len(self.removed) + len(self.added)


class Ends(NamedTuple):
    """One side of all hyperedges, inputs or outputs, as flat int64 arrays; unused room at their ends.

    `vertices[starts[e]:starts[e + 1]]` are those of hyperedge e. The positions in `vertices` of one vertex
    v are a chain: `first[v]`, then `following[position]`, `NONE` at its end; `hyperedges[position]` says
    whose. So a new hyperedge costs its own size, wherever its vertices lie.
    """

    starts: Numbers
    vertices: Numbers
    hyperedges: Numbers
    first: Numbers
    following: Numbers


class Hypergraph:
    """Vertices 0 … n − 1 and numbered hyperedges between them, in flat arrays."""

    def __init__(self, vertices: int, hyperedges: Iterable[Hyperedge] = ()) -> None:
        """Raises ValueError for what `apply` refuses, and for a negative number of vertices."""
        if not 0 <= vertices <= ENDS_MOST:
            raise ValueError(f"a hypergraph has 0 to {ENDS_MOST} vertices, not {vertices}")
        self._vertices, self._count, self._version = vertices, 0, 0
        self._inputs, self._outputs = _no_ends(vertices), _no_ends(vertices)
        self._weights: Weights = np.empty(0)
        self.apply(Edits(added=tuple(hyperedges)))

    def __len__(self) -> int:
        """How many hyperedges it ever had: their numbers are below it."""
        return self._count

    @property
    def vertices(self) -> int:
        """How many vertices there are."""
        return self._vertices

    @property
    def version(self) -> int:
        """Another one after each edit."""
        return self._version

    @property
    def inputs(self) -> Ends:
        """Which vertices each hyperedge needs; not to be written to."""
        return self._inputs

    @property
    def outputs(self) -> Ends:
        """Which vertices each hyperedge gives; not to be written to."""
        return self._outputs

    @property
    def weights(self) -> Weights:
        """float64, at least one for each hyperedge; `UNUSABLE` where it was removed; not to be written to."""
        return self._weights

    def hyperedge(self, number: int) -> Hyperedge:
        """That hyperedge as it is now.

        Raises:
            ValueError: there is none with this number.
        """
        self._check_number(number)
        inputs, outputs = _of(self._inputs, number), _of(self._outputs, number)
        return Hyperedge(inputs, outputs, float(self._weights[number]))

    def makers(self, vertex: int) -> list[int]:
        """The hyperedges that give this vertex, removed ones too, the newest first."""
        found, position = [], int(self._outputs.first[vertex])
        while position != NONE:
            found.append(int(self._outputs.hyperedges[position]))
            position = int(self._outputs.following[position])
        return found

    def apply(self, edits: Edits) -> None:
        """Make all these changes, or none. Trees over it must be told by `hyperpath_update.update` instead.

        Raises:
            ValueError: as `check`.
        """
        self.check(edits)
        self._version += 1
        for number, weight in edits.weights.items():
            self._weights[number] = weight
        self._weights[list(edits.removed)] = UNUSABLE
        if edits.added:
            self._add(edits.added)

    def _add(self, added: tuple[Hyperedge, ...]) -> None:
        self._inputs = _extended(self._inputs, self._count, [edge.inputs for edge in added])
        self._outputs = _extended(self._outputs, self._count, [edge.outputs for edge in added])
        count = self._count + len(added)
        self._weights = _roomy(self._weights, count)
        self._weights[self._count : count] = [edge.weight for edge in added]
        self._count = count

    def check(self, edits: Edits) -> None:
        """Whether they can be made.

        Raises:
            ValueError: a number or a vertex that is not there, a hyperedge named twice or without outputs,
                a weight below 0.
        """
        for number in (*edits.weights, *edits.removed):
            self._check_number(number)
        if len({*edits.weights, *edits.removed}) < len(edits.weights) + len(edits.removed):
            raise ValueError("a hyperedge may be changed once at a time")
        if not all(
            weight >= 0 for weight in (*edits.weights.values(), *(edge.weight for edge in edits.added))
        ):
            raise ValueError("a weight is a number, at least 0")
        vertices = [vertex for edge in edits.added for vertex in (*edge.inputs, *edge.outputs)]
        if vertices and not (min(vertices) >= 0 and max(vertices) < self._vertices):
            raise ValueError(f"vertices are numbered from 0 to {self._vertices - 1}")
        if not all(edge.outputs for edge in edits.added):
            raise ValueError("a hyperedge gives something")
        if len(vertices) + self._count + len(self._inputs.vertices) + len(self._outputs.vertices) > ENDS_MOST:
            raise ValueError(f"a hypergraph has at most {ENDS_MOST} ends of hyperedges")

    def _check_number(self, number: int) -> None:
        if not 0 <= number < self._count:
            raise ValueError(f"there is no hyperedge {number}: there are {self._count}")


def _no_ends(vertices: int) -> Ends:
    none = np.empty(0, dtype=np.int64)
    return Ends(np.zeros(1, dtype=np.int64), none, none, np.full(vertices, NONE, dtype=np.int64), none)


def _of(ends: Ends, number: int) -> tuple[int, ...]:
    return tuple(ends.vertices[ends.starts[number] : ends.starts[number + 1]].tolist())


def _extended(ends: Ends, count: int, sides: list[tuple[int, ...]]) -> Ends:
    """With these sides behind the `count` that are there; a vertex that is named twice counts once."""
    single = [tuple(dict.fromkeys(side)) for side in sides]
    begin = int(ends.starts[count])
    stops = begin + np.cumsum([len(side) for side in single])
    end = int(stops[-1])
    starts = _roomy(ends.starts, count + len(single) + 1)
    starts[count + 1 : count + len(single) + 1] = stops
    vertices, hyperedges = _roomy(ends.vertices, end), _roomy(ends.hyperedges, end)
    grown = Ends(starts, vertices, hyperedges, ends.first, _roomy(ends.following, end))
    grown.vertices[begin:end] = [vertex for side in single for vertex in side]
    grown.hyperedges[begin:end] = np.repeat(np.arange(len(single)) + count, [len(side) for side in single])
    _chain(grown, begin, end)
    return grown


def _roomy(array: NDArray[Any], size: int) -> NDArray[Any]:
    """The same array, or one twice as large as needed: adding one by one costs a constant each on average."""
    if len(array) >= size:
        return array
    grown = np.zeros(2 * size if len(array) else size, dtype=array.dtype)
    grown[: len(array)] = array
    return grown


@compiled
def _chain(ends: Ends, begin: int, end: int) -> None:
    for position in range(begin, end):
        vertex = ends.vertices[position]
        ends.following[position] = ends.first[vertex]
        ends.first[vertex] = position
