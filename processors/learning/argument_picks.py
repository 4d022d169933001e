"""Which values the calls of ended sessions would have been given, each call's together."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.argument_choice import Values
from pml.processors.learning.argument_combining import LEAST_SHARE, combinations
from pml.processors.learning.argument_repeats import KINDS, Repeats, kinds_of
from pml.processors.learning.grouping import Places

# Values that are less likely than this are none: who has no other cannot be named.
NAMEABLE: Final = 0.05

Column = NDArray[np.float64]


def picked(found: Values, said: Column, calls: Places, repeats: Repeats) -> Places:
    """int64: of each case that has values the row of the one that its call would be given, by case.

    Each case gets its likeliest value, but where two of a call have the same one: those are weighed together.

    Args:
        said: float64 [values], their shares.
        calls: int64 [values], the call of each, ascending.
    """
    order = np.lexsort((-said, found.owners))
    starts = np.flatnonzero(np.diff(found.owners[order], prepend=-1))
    rows, ends = order[starts], np.append(starts[1:], len(order))
    values = np.flatnonzero(kinds_of(found.of(rows)) < len(KINDS))
    for cases in _twice(values, calls[rows], found.numbers[rows]):
        options = [_options(order[starts[case] : ends[case]], said) for case in cases]
        own = found.of(np.concatenate(options))
        names = [found.numbers[each].tolist() for each in options]
        ((_, picks),) = combinations([said[each].tolist() for each in options], 1, names, repeats.of(own))
        rows[cases] = [each[pick] for each, pick in zip(options, picks, strict=True)]
    return np.asarray(rows)


def leads(found: Values, said: Column, rows: Places) -> Column:
    """float64 [rows]: by how much each is likelier than the next value of its case that can be named."""
    others = np.where(said >= NAMEABLE, said, 0.0)
    others[rows] = 0.0
    next_best = np.zeros(int(found.owners.max(initial=-1)) + 1)
    np.maximum.at(next_best, found.owners, others)
    return lead(said[rows], next_best[found.owners[rows]])


def lead(shares: Column, others: Column) -> Column:
    """The log of how many times as likely as the others; what is next to nothing is `LEAST_SHARE`."""
    return np.asarray(np.log(np.maximum(shares, LEAST_SHARE) / np.maximum(others, LEAST_SHARE)))


def _options(rows: Places, said: Column) -> Places:
    """The values that can be named, or the likeliest one."""
    return rows[: max(1, int((said[rows] >= NAMEABLE).sum()))]


def _twice(values: Places, calls: Places, numbers: NDArray[np.int32]) -> list[Places]:
    """The cases of each call of which two have the same value; `values` are those that have one."""
    pairs = np.column_stack((calls, numbers))[values]
    same, counts = np.unique(pairs, axis=0, return_counts=True)
    clashing = np.unique(same[counts > 1, 0])
    first, last = np.searchsorted(calls, clashing), np.searchsorted(calls, clashing, side="right")
    return [np.arange(start, end) for start, end in zip(first, last, strict=True)]
