"""Boosted trees over the values of a parameter: how often sources were right, and what else speaks for it.

They take the place of the linear logit (`argument_choice`) where they surely name the right value more often,
in calls that they were not grown from.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.argument_choice import VALUES_MOST, Values, some
from pml.processors.learning.boosted_trees import BoostedTrees
from pml.processors.learning.grouping import Places
from pml.processors.learning.softmax import NONE, shares

Column = NDArray[np.float64]

# Cases that trees are grown from, drawn from all.
CASES_MOST: Final = 6_000
# So few cases grow no tree.
CASES_LEAST: Final = 50
# Standard deviations of a coin that was tossed for each case in which they differ.
SURE: Final = 1.96


def tree_shares(trees: BoostedTrees, found: Values) -> Column:
    """float64 [values]: softmax over the values of a case and "none of them"."""
    rows, ranks, count = _places(found)
    named = np.zeros((count, VALUES_MOST), dtype=np.bool_)
    named[rows, ranks] = True
    margins = np.zeros(named.shape)
    margins[rows, ranks] = trees.margins(_features(found)[:, None])[:, 0]
    return np.asarray(shares(margins, named)[rows, ranks])


def grown(found: Values) -> BoostedTrees:
    """Trees of these values; always the same of the same."""
    read = some(found, CASES_MOST)
    rows, ranks, count = _places(read)
    features = _features(read)
    given = np.zeros((count, VALUES_MOST, features.shape[1]), dtype=np.float32)
    named = np.zeros(given.shape[:2], dtype=np.bool_)
    given[rows, ranks], named[rows, ranks] = features, True
    came = np.full(count, NONE)
    came[rows[read.right]] = ranks[read.right]
    return BoostedTrees.fit(given, named, came, seed=0)


def cross_grown(found: Values, folds: Places, count: int) -> Column:
    """float64 [values]: their shares by trees that were grown from cases of other folds.

    Args:
        folds: int64 [values], the fold of each value's case.
        count: of folds.
    """
    said = np.zeros(len(found.owners))
    for held in range(count):
        inside = folds == held
        if inside.any():
            said[inside] = tree_shares(grown(found.of(~inside)), found.of(inside))
    return said


def right_cases(found: Values, said: Column) -> NDArray[np.bool_]:
    """bool [cases]: whether the likeliest value of each is the right one."""
    order = np.lexsort((said, found.owners))
    last = np.flatnonzero(np.diff(found.owners[order], append=-1))
    return np.asarray(found.right[order[last]])


def surely_more(one: NDArray[np.bool_], other: NDArray[np.bool_]) -> bool:
    """Whether one is right in more cases than the other, beyond chance (McNemar 1947, at 95 %)."""
    gained, lost = int(np.sum(one & ~other)), int(np.sum(other & ~one))
    return bool(gained - lost > SURE * (gained + lost) ** 0.5)


def _places(found: Values) -> tuple[Places, Places, int]:
    """For each value the number of its case, from 0, and its place there; how many cases there are."""
    names, rows = np.unique(found.owners, return_inverse=True)
    return rows, np.arange(len(rows)) - np.searchsorted(rows, rows), len(names)


def _features(found: Values) -> NDArray[np.float32]:
    return np.concatenate((found.features, found.contexts), axis=1).astype(np.float32)
