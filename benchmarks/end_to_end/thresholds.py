"""Which threshold the sessions of some folds speak for: one half, unless another is surely better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from benchmarks.end_to_end.clock import Account
from pml.processors.learning.intervals import interval, resampled_means

WASTE_MOST = 0.35
# A threshold that is best on some sessions wastes more on others: it is chosen at so much.
WASTE_AIMED = 0.30
# Two hundredths apart, and one that nothing reaches.
THRESHOLDS = (*(round(0.02 * step, 2) for step in range(50)), 0.99, 1.01)
# The one of them that stays where no other is surely better: what begins is likelier right than wrong.
HALF = 0.5

# What came of each session of a fold, by threshold.
Tried = Mapping[float, Sequence[Account]]


def chosen_threshold(folds: Sequence[Tried]) -> float:
    """`HALF`, or the best threshold on these folds where to choose it so is surely better.

    Better is what saves more, or wastes too much no longer, in 95 % of resampled sessions. What a threshold
    saves is asked of sessions that it was not chosen on, fold by fold: of some fifty thresholds one is always
    best on those that it was chosen on.
    """
    saved_s = [
        usual.wall_s - each.wall_s
        for number, fold in enumerate(folds)
        for usual, each in zip(fold[HALF], fold[_best(_without(folds, number))], strict=True)
    ]
    too_much_s = [each.wasted_s - WASTE_MOST * each.used_s for fold in folds for each in fold[HALF]]
    surely = _surely_above_zero(saved_s) or _surely_above_zero(too_much_s)
    return _best(folds) if surely else HALF


def chosen_elsewhere(folds: Sequence[Tried], number: int) -> float:
    """What is chosen on the sessions of the other folds."""
    return chosen_threshold(_without(folds, number))


def _without(folds: Sequence[Tried], number: int) -> list[Tried]:
    return [*folds[:number], *folds[number + 1 :]]


def _best(folds: Sequence[Tried]) -> float:
    """That with the shortest wall clock of those that waste little enough; the highest of equals."""
    sums = {each: Account.total(chain.from_iterable(fold[each] for fold in folds)) for each in THRESHOLDS}
    sparing = {each: account for each, account in sums.items() if account.waste <= WASTE_AIMED}
    return min(sparing, key=lambda each: (sparing[each].wall_s, -each))


def _surely_above_zero(values: Sequence[float]) -> bool:
    """Whether the 95 % interval of their mean is, over sessions."""
    if not any(values):
        return False
    return interval(resampled_means(np.array(values), np.arange(len(values)), seed=0))[0] > 0
