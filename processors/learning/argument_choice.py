"""Which value a parameter gets: a linear logit over the values that its sources name, or none of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pml.processors.discovery.fitting import SHRINKAGE, descended
from pml.processors.learning.sampling import SAME, sampled

# Of a parameter the values with the best source are weighed, so many.
VALUES_MOST: Final = 12
FEATURES: Final = 7
# Cases that weights are learned from, drawn from all: there are but seven weights.
CASES_MOST: Final = 6_000
_LEAST: Final = 1e-4

Column = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """The values of cases, one below the other, those with the best source first.

    `owners` int64 [values], the case of each, ascending; `numbers` int32, which of its call's;
    `features` float64 [values, FEATURES]; `right` bool; `contexts` float32 [values, n], the most of its
    candidates.
    """

    owners: Places
    numbers: NDArray[np.int32]
    features: Column
    right: NDArray[np.bool_]
    contexts: NDArray[np.float32]

    def of(self, kept: Places | NDArray[np.bool_]) -> Values:
        """Some of them, in their order."""
        return Values(
            self.owners[kept],
            self.numbers[kept],
            self.features[kept],
            self.right[kept],
            self.contexts[kept],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Offered:
    """Candidates of cases that ascend, all columns [candidates].

    `rates` float64 of their sources, `looks` of values that look alike, and `nameable`, of all sources of the
    parameter together; `shares` float64, how much of what the parameter was given looks like it; `numbers`
    int32, of the value in its call; `cases` int64; `families` int8, of the source; `right` bool.
    """

    rates: Column
    looks: Column
    shares: Column
    nameable: Column
    cases: Places
    numbers: NDArray[np.int32]
    families: NDArray[np.int8]
    right: NDArray[np.bool_]
    contexts: NDArray[np.float32]


def weighed(offered: Offered) -> Values:
    """Candidates gathered by value: the best rate, the best of another family, how many name it, its look."""
    order = np.lexsort((offered.families, -offered.rates, offered.numbers, offered.cases))
    cases, numbers, families = offered.cases[order], offered.numbers[order], offered.families[order]
    rates, right, nameable = offered.rates[order], offered.right[order], offered.nameable[order]
    looks, alike = offered.looks[order], offered.shares[order]
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (cases[1:] != cases[:-1]) | (numbers[1:] != numbers[:-1])
    starts = np.flatnonzero(first)
    of = np.cumsum(first) - 1
    other = np.where(families != families[starts][of], rates, _LEAST)
    second = np.maximum.reduceat(other, starts) if len(starts) else other
    counts = np.bincount(of, minlength=len(starts)).astype(np.float64)
    told = (rates[starts], second, nameable[starts], looks[starts], alike[starts])
    features = np.column_stack((*map(logit, told), np.log(counts), np.ones(len(starts))))
    contexts = offered.contexts[order]
    most = np.maximum.reduceat(contexts, starts, axis=0) if len(starts) else contexts
    named_at = np.minimum.reduceat(order, starts) if len(starts) else order
    return _best(Values(cases[starts], numbers[starts], features, right[starts], most), named_at)


def _best(found: Values, named_at: Places) -> Values:
    """Those of each case that have the best sources; of equals those that are named first."""
    order = np.lexsort((named_at, -found.features[:, 0], found.owners))
    owners = found.owners[order]
    ranks = np.arange(len(owners)) - np.searchsorted(owners, owners)
    return found.of(order[ranks < VALUES_MOST])


def logit(rates: Column) -> Column:
    """Log odds, of rates kept away from 0 and 1."""
    near = np.clip(rates, _LEAST, 1 - _LEAST)
    return np.asarray(np.log(near / (1 - near)))


def shares(weights: Column, found: Values) -> Column:
    """float64 [values]: softmax over the values of a case and "none of them", which has 0."""
    if not len(found.owners):
        return np.zeros(0)
    sums = found.features @ weights
    starts = np.flatnonzero(np.diff(found.owners, prepend=found.owners[0] - 1))
    lengths = np.diff(starts, append=len(sums))
    most = np.maximum(np.maximum.reduceat(sums, starts), 0.0)
    odds = np.exp(sums - np.repeat(most, lengths))
    total = np.add.reduceat(odds, starts) + np.exp(-most)
    return np.asarray(odds / np.repeat(total, lengths))


def some(found: Values, most: int) -> Values:
    """The values of at most so many cases, drawn from all: always the same of the same."""
    names, of = np.unique(found.owners, return_inverse=True)
    kept = np.zeros(len(names), dtype=np.bool_)
    kept[sampled(len(names), most, SAME)] = True
    return found.of(kept[of])


def learned_weights(found: Values) -> Column:
    """float64 [FEATURES]: those that make what was given most likely."""
    start = np.array([1.0, *(0.0,) * (FEATURES - 1)])
    if not len(found.owners):
        return start
    read = some(found, CASES_MOST)
    cases = len(np.unique(read.owners))

    def slope(weights: Column) -> Column:
        error = shares(weights, read) - read.right
        return np.asarray(error @ read.features / cases + SHRINKAGE * (weights - start))

    return descended(start, slope)
