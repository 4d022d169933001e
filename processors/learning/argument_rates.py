"""How often a source named the right value, counted for ever wider circles: each draws the narrower ones.

The rate of a source in a circle is `(right + STRENGTH · wider) / (offered + STRENGTH)`, `wider` being its
rate in the next wider one (the m-estimate of Cestnik 1990, chained). Circles, from the widest: all
parameters, those of a type, those of a name, one parameter of one tool, the specific source of that
parameter, and that after a certain previous call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pml.processors.discovery.words import spoken
from pml.processors.learning.argument_candidates import Candidate
from pml.processors.learning.argument_shapes import shape_of
from pml.processors.learning.candidates import fitting
from pml.processors.learning.grouping import summed
from pml.processors.learning.parameters import Parameter

CIRCLES: Final = 6
SHAPE_CIRCLES: Final = 4
# Stands for all sources together: how often any of them named the value of a parameter.
ANY_SOURCE: Final = Candidate(b"", "any source", "any source")
STRENGTH: Final = 3.0
# What a source is worth of which nothing was ever counted.
START: Final = 0.02
KEYS_MOST: Final = 400_000

Keys = NDArray[np.int64]
Column = NDArray[np.float64]


_spoken = lru_cache(65_536)(spoken)


def circles(found: Candidate, wanted: Parameter, previous: str) -> tuple[str, ...]:
    """The names under which a candidate's success is counted, the widest circle first."""
    general, own = found.general, f"{wanted.tool}\t{wanted.name}\t{found.specific}"
    spoken_name = _spoken(wanted.name)
    return (
        general,
        f"type\t{wanted.type}\t{general}",
        f"name\t{spoken_name}\t{general}",
        f"tool\t{wanted.tool}\t{wanted.name}\t{general}",
        f"own\t{own}",
        f"after\t{previous}\t{own}",
    )


def shape_circles(found: Candidate, wanted: Parameter) -> tuple[str, ...]:
    """The names under which the success of values that look alike is counted, the widest circle first."""
    shape = shape_of(found.value)
    return (
        f"shape\t{shape}",
        f"shape\t{wanted.type}\t{shape}",
        f"shape\tname\t{_spoken(wanted.name)}\t{shape}",
        f"shape\ttool\t{wanted.tool}\t{wanted.name}\t{shape}",
    )


@lru_cache(65_536)
def key_of(name: str) -> int:
    """The int64 under which a name is kept."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big", signed=True)


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """`keys` int64 ascending; how often each was `offered` and `right`, float64 likewise."""

    keys: Keys
    offered: Column
    right: Column

    @classmethod
    def counted(cls, keys: Keys, *counted: tuple[NDArray[np.int32], NDArray[np.bool_]]) -> Rates:
        """Count candidates.

        Args:
            keys: int64 [names], the key of each number.
            counted: int32 [candidates, circles], the names of each, and bool [candidates], which were right.
        """
        offered, hits = np.zeros(len(keys)), np.zeros(len(keys))
        for numbers, right in counted:
            more, right_ones = totals(numbers, right, len(keys))
            offered, hits = offered + more, hits + right_ones
        if len(keys) > KEYS_MOST:
            kept = np.argsort(-offered, kind="stable")[:KEYS_MOST]
            keys, offered, hits = keys[kept], offered[kept], hits[kept]
        order = np.argsort(keys)
        return cls(keys[order], offered[order], hits[order])

    def of(self, names: Sequence[tuple[str, ...]]) -> Column:
        """float64 [candidates]: the rate of each, by the names of its circles."""
        if not names or not len(self.keys):
            return np.full(len(names), START)
        asked = np.array([[key_of(name) for name in each] for each in names], dtype=np.int64)
        at = np.minimum(np.searchsorted(self.keys, asked), len(self.keys) - 1)
        known = self.keys[at] == asked
        return chained(np.where(known, self.offered[at], 0.0), np.where(known, self.right[at], 0.0))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """`keys`, `offered` and `right`."""
        return {"keys": self.keys, "offered": self.offered, "right": self.right}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Rates:
        """What `to_arrays` wrote.

        Raises:
            ValueError: an array is missing or does not fit: train the model again.
        """
        keys, offered, right = (
            fitting(arrays, name, kind, 1)
            for name, kind in (("keys", np.int64), ("offered", np.float64), ("right", np.float64))
        )
        if not len(keys) == len(offered) == len(right):
            raise ValueError("the model's rates have different lengths: train it again")
        return cls(keys, offered, right)


def chained(offered: Column, right: Column) -> Column:
    """float64 [candidates]: rates from counts [candidates, CIRCLES], the widest first."""
    rate = np.full(len(offered), START)
    for circle in range(offered.shape[1]):
        rate = (right[:, circle] + STRENGTH * rate) / (offered[:, circle] + STRENGTH)
    return rate


def cross_fitted(
    numbers: NDArray[np.int32], right: NDArray[np.bool_], folds: NDArray[np.int64], names: int, count: int
) -> Column:
    """float64 [candidates]: the rate of each, counted in all folds but its own.

    Args:
        numbers: int32 [candidates, CIRCLES] below `names`.
        right: bool [candidates].
        folds: int64 [candidates] below `count`.
        names: how many names there are.
        count: how many folds.
    """
    found = np.zeros(len(right))
    offered, hits = totals(numbers, right, names)
    for fold in range(count):
        own = np.flatnonzero(folds == fold)
        less_offered, less_hits = totals(numbers[own], right[own], names)
        asked = numbers[own]
        found[own] = chained((offered - less_offered)[asked], (hits - less_hits)[asked])
    return found


def totals(numbers: NDArray[np.int32], right: NDArray[np.bool_], names: int) -> tuple[Column, Column]:
    """float64 [names], twice: how often each was offered, and how often right."""
    offered, hits = np.zeros(names), np.zeros(names)
    for circle in range(numbers.shape[1]):
        column = numbers[:, circle].astype(np.int64)
        offered += np.bincount(column, minlength=names)
        hits += summed(right, column, names)
    return offered, hits
