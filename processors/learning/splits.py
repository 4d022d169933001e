"""Training and test side of traces: by folds and by time; near-duplicates lie on one side."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.compiled import compiled
from pml.processors.learning.time_cut import first_late

Column = NDArray[np.int64]
Sides = NDArray[np.int8]

TRAINING, TEST, LEFT_OUT = 0, 1, -1


def folds(groups: Column, count: int, seed: int) -> Column:
    """int64 [traces], from 0: the fold of each. Groups, the largest first, go to the smallest fold.

    Args:
        groups: int64 [traces].
        count: folds, at least 2.
        seed: orders groups of one size.

    Raises:
        ValueError: there are fewer than two folds.
    """
    if count < 2:
        raise ValueError("with fewer than two folds nothing is unseen")
    names, of, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    drawn = np.random.default_rng(seed).permutation(len(names))
    order = drawn[np.argsort(-sizes[drawn], kind="stable")]
    return _spread(order, sizes, count)[of]


def by_time(groups: Column, times_ms: Column, test_share: float) -> Sides:
    """int8 [traces]: the latest are `TEST`, earlier ones `TRAINING`.

    A later trace whose group already has an earlier one is `LEFT_OUT`: in the test it would be known, in
    training it would come from the future.

    Raises:
        ValueError: `test_share` is not between 0 and 1.
    """
    if not 0 < test_share < 1:
        raise ValueError("the share of the test is between 0 and 1")
    count = len(times_ms)
    if count == 0:
        return np.zeros(0, dtype=np.int8)
    cut = np.sort(times_ms)[first_late(count, test_share)]
    names, of = np.unique(groups, return_inverse=True)
    first = np.full(len(names), np.iinfo(np.int64).max)
    np.minimum.at(first, of, times_ms)
    late = times_ms >= cut
    return np.where(late, np.where(first[of] < cut, LEFT_OUT, TEST), TRAINING).astype(np.int8)


def by_hash(groups: Column, test_share: float, seed: int) -> Sides:
    """int8 [traces]: `TEST` or `TRAINING` by group and seed alone, so traces that come later move none.

    Args:
        groups: int64 [traces], equal in every process for what is a near-duplicate.
        test_share: of the groups, from 0 up to but without 1.
        seed: draws other groups.

    Raises:
        ValueError: `test_share` is not in [0, 1).
    """
    if not 0 <= test_share < 1:
        raise ValueError("the share of the test is at least 0 and less than 1")
    drawn = mixed(groups.view(np.uint64) ^ mixed(np.array([seed], dtype=np.int64).view(np.uint64)))
    shares = (drawn >> np.uint64(11)).astype(np.float64) / 2.0**53
    return np.where(shares < test_share, TEST, TRAINING).astype(np.int8)


def mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """uint64: each scrambled, one to one, so that near values lie far apart (SplitMix64, Steele 2014)."""
    found = values + np.uint64(0x9E3779B97F4A7C15)
    found = (found ^ (found >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return found ^ (found >> np.uint64(31))


def leaks(groups: Column, sides: Column | Sides) -> Column:
    """Groups, ascending, that lie on more than one side; of what was left out nothing is asked."""
    kept = sides != LEFT_OUT
    pairs = np.unique(np.column_stack((groups[kept], sides[kept].astype(np.int64))), axis=0)
    names, counts = np.unique(pairs[:, 0], return_counts=True)
    return names[counts > 1]


@compiled
def _spread(order: Column, sizes: Column, count: int) -> Column:
    """The fold of each group: one after another to the fold that has least, of equal ones the first."""
    held = np.zeros(count, dtype=np.int64)
    found = np.zeros(len(sizes), dtype=np.int64)
    for group in order:
        found[group] = np.argmin(held)
        held[found[group]] += sizes[group]
    return found
