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


def look_circles(wanted: Parameter) -> tuple[str, ...]:
    """The names under which the values that were given are counted, the widest circle first."""
    return (
        "given",
        f"given\ttype\t{wanted.type}",
        f"given\tname\t{_spoken(wanted.name)}",
        f"given\ttool\t{wanted.tool}\t{wanted.name}",
    )


def given_looks(value: bytes, wanted: Parameter) -> tuple[str, ...]:
    """The names under which those among them that look like this one are counted."""
    shape = shape_of(value)
    return tuple(f"{circle}\tlike\t{shape}" for circle in look_circles(wanted))


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
        asked = _keys_of(names)
        return chained(self._counted(self.offered, asked), self._counted(self.right, asked))

    def shares(self, looks: Sequence[tuple[str, ...]], circles: Sequence[tuple[str, ...]]) -> Column:
        """float64 [candidates]: of the values that were given in a circle, how many look like each."""
        if not looks or not len(self.keys):
            return np.full(len(looks), START)
        given = self._counted(self.offered, _keys_of(circles))
        return chained(given, self._counted(self.right, _keys_of(looks)))

    def _counted(self, counts: Column, asked: Keys) -> Column:
        at = np.minimum(np.searchsorted(self.keys, asked), len(self.keys) - 1)
        return np.where(self.keys[at] == asked, counts[at], 0.0)

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


def _keys_of(names: Sequence[tuple[str, ...]]) -> Keys:
    return np.array([[key_of(name) for name in each] for each in names], dtype=np.int64)


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


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """What was given in each case: `circles` and `looks`, int32 [cases, SHAPE_CIRCLES], names."""

    circles: NDArray[np.int32]
    looks: NDArray[np.int32]

    def counts(self, kept: NDArray[np.bool_], names: int) -> tuple[Column, Column]:
        """float64 [names], twice: what was given in each circle, and what of it looked so."""
        given, alike = (_occurrences(each[kept], names) for each in (self.circles, self.looks))
        return given, alike


def cross_shares(
    looks: NDArray[np.int32], cases: NDArray[np.int64], given: Given, folds: NDArray[np.int64], count: int
) -> Column:
    """float64 [candidates]: of what was given in other folds, how much looks like each.

    Args:
        looks: int32 [candidates, SHAPE_CIRCLES], names.
        cases: int64 [candidates], the case of each.
        given: what was given.
        folds: int64 [cases] below `count`.
        count: how many folds.
    """
    names = 1 + max(int(each.max(initial=0)) for each in (looks, given.circles, given.looks))
    found = np.zeros(len(looks))
    for fold in range(count):
        own = np.flatnonzero(folds[cases] == fold)
        all_given, alike = given.counts(folds != fold, names)
        found[own] = chained(all_given[given.circles[cases[own]]], alike[looks[own]])
    return found


def totals(numbers: NDArray[np.int32], right: NDArray[np.bool_], names: int) -> tuple[Column, Column]:
    """float64 [names], twice: how often each was offered, and how often right."""
    hits = np.zeros(names)
    for circle in range(numbers.shape[1]):
        hits += summed(right, numbers[:, circle].astype(np.int64), names)
    return _occurrences(numbers, names), hits


def _occurrences(numbers: NDArray[np.int32], names: int) -> Column:
    return np.bincount(numbers.ravel(), minlength=names).astype(np.float64)
