"""Which capability contains what: a hypergraph of several levels, as arrays that messages follow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.candidates import fitting
from pml.processors.learning.compiled import compiled
from pml.processors.learning.traces import TraceSet
from pml.processors.learning.vocabulary import UNKNOWN, Ids

Places = NDArray[np.int64]

STRUCTURES_MOST = 512
_CYCLE = -1
_NOTHING: Mapping[int, Iterable[int]] = MappingProxyType({})

Contained = Mapping[int, Iterable[int]]
"""The members of each owner."""


class Messages(NamedTuple):
    """Who hears whom in one direction. Node i hears `senders[offsets[i]:offsets[i + 1]]`.

    `order` int32 [nodes] has every sender before those who hear it; `starts` int64 [levels + 1] are bounds in
    it: who lies between two of them hears nobody of these. `sends` bool [nodes]: somebody hears it.
    """

    order: Ids
    starts: Places
    offsets: Places
    senders: Ids
    sends: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Membership:
    """Hyperedge `owners[i]` contains node `members[i]`, both int32 [pairs], each pair once.

    Nodes are numbered as the vocabulary; numbers from its size on are hyperedges that are no candidates.
    A tool contains nothing, a capability tools and capabilities.

    Raises:
        ValueError: a number is not below `nodes`, or something contains itself.
    """

    nodes: int
    owners: Ids
    members: Ids
    levels: Places = field(init=False)
    _upward: Messages = field(init=False, repr=False)
    _downward: Messages = field(init=False, repr=False)

    def __post_init__(self) -> None:
        pairs = np.column_stack((self.owners, self.members)).astype(np.int64).reshape(-1, 2)
        if pairs.size and not (pairs.min() > UNKNOWN and pairs.max() < self.nodes):
            raise ValueError(f"members and owners are numbered from 1 to {self.nodes - 1}")
        pairs = np.unique(pairs, axis=0)
        object.__setattr__(self, "owners", pairs[:, 0].astype(np.int32))
        object.__setattr__(self, "members", pairs[:, 1].astype(np.int32))
        levels = _levels(self.nodes, self.owners, self.members)
        if np.any(levels == _CYCLE):
            raise ValueError("a capability contains itself: no message could be passed first")
        object.__setattr__(self, "levels", levels)
        # Every epoch asks for them again: they are found once.
        object.__setattr__(self, "_upward", _messages(self.nodes, self.owners, self.members, levels))
        object.__setattr__(self, "_downward", _messages(self.nodes, self.members, self.owners, -levels))

    @classmethod
    def of(cls, nodes: int, contained: Mapping[int, Iterable[int]]) -> Membership:
        """From the members of each owner."""
        pairs = [(owner, member) for owner, members in contained.items() for member in members]
        columns = np.array(pairs, dtype=np.int32).reshape(-1, 2)
        return cls(nodes, columns[:, 0], columns[:, 1])

    @classmethod
    def of_structures(
        cls, traces: TraceSet, size: int, contained: Contained = _NOTHING, most: int = STRUCTURES_MOST
    ) -> Membership:
        """The sets of items that traces called together, the most frequent, as hyperedges from `size` on.

        A set that lies within another one is its member: so there are several levels. Of what is `contained`,
        by the number of its capability, programs may call each other in a circle: that is left out.
        """
        bounds = zip(traces.offsets[:-1], traces.offsets[1:], strict=True)
        sets = Counter(frozenset(traces.items[start:end].tolist()) - {UNKNOWN} for start, end in bounds)
        found = [each for each in sets if len(each) > 1]
        found = sorted(found, key=lambda each: (-sets[each], sorted(each)))[:most]
        structures: dict[int, list[int]] = {}
        for number, own in enumerate(found, start=size):
            within = [other for other, each in enumerate(found, start=size) if each < own]
            structures[number] = [*own, *within]
        return cls.of(size + len(found), {**_without_circles(size, contained), **structures})

    def upward(self) -> Messages:
        """Owners hear their members, the lowest level first."""
        return self._upward

    def downward(self) -> Messages:
        """Members hear their owners, the highest level first."""
        return self._downward

    def silent(self) -> Membership:
        """The same nodes, none of which contains anything: the head without message passing."""
        return Membership.of(self.nodes, {})

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """`nodes` [1], `owners`, `members`."""
        return {"nodes": np.array([self.nodes]), "owners": self.owners, "members": self.members}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Membership:
        """What `to_arrays` wrote.

        Raises:
            ValueError: an array is missing or does not fit: train the model again.
        """
        owners, members = (fitting(arrays, name, np.int32, 1) for name in ("owners", "members"))
        return cls(int(fitting(arrays, "nodes", np.int64, 1)[0]), owners, members)


def _without_circles(size: int, contained: Contained) -> dict[int, list[int]]:
    """What is contained, without members that lie on a circle or contain what does."""
    pairs = np.array([(owner, each) for owner, members in contained.items() for each in members], np.int32)
    pairs = pairs.reshape(-1, 2)
    levels = _levels(size, pairs[:, 0].copy(), pairs[:, 1].copy())
    return {
        owner: [each for each in members if levels[each] != _CYCLE] for owner, members in contained.items()
    }


def _messages(nodes: int, hearing: Ids, heard: Ids, levels: Places) -> Messages:
    by_hearing = np.argsort(hearing, kind="stable")
    counts = np.bincount(hearing, minlength=nodes)
    return Messages(
        np.argsort(levels, kind="stable").astype(np.int32),
        np.concatenate(([0], np.cumsum(np.unique(levels, return_counts=True)[1]))),
        np.concatenate(([0], np.cumsum(counts))),
        heard[by_hearing],
        np.bincount(heard, minlength=nodes) > 0,
    )


@compiled
def _levels(nodes: int, owners: Ids, members: Ids) -> Places:
    """int64 [nodes]: 0 of what contains nothing, else one more than the highest member; −1 on a cycle.

    What is left when nodes without open members are taken away again and again (Kahn 1962) is on a cycle.
    """
    open_members = np.zeros(nodes, dtype=np.int64)
    for pair in range(len(owners)):
        open_members[owners[pair]] += 1
    levels = np.full(nodes, _CYCLE, dtype=np.int64)
    level, left = 0, True
    while left:
        ready = np.flatnonzero((levels == _CYCLE) & (open_members == 0))
        left = len(ready) > 0
        levels[ready] = level
        for pair in range(len(owners)):
            if levels[members[pair]] == level:
                open_members[owners[pair]] -= 1
        level += 1
    return levels
