"""How likely a run succeeds that takes a path, by the runs that took it before: what priorities compare with.

A path is the tools that a run called, in the order in which they ended.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.grouping import summed
from pml.processors.learning.priorities import Priorities, priorities
from pml.processors.learning.splits import folds, mixed
from pml.processors.learning.td_error import td_errors

FOLDS: Final = 5
# A path that was taken once is between what came of it and what comes of any run.
PRIOR_RUNS: Final = 1.0

Column = NDArray[np.float64]
Places = NDArray[np.int64]


def path_ids(tools: NDArray[np.integer], offsets: Places) -> Places:
    """int64 [runs], from 0: runs with the same number called the same tools in the same order.

    Args:
        tools: [calls], the number of each call's tool, those of a run together.
        offsets: int64 [runs + 1], run i has the calls `offsets[i]` to `offsets[i + 1]`.
    """
    owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    places = np.arange(len(tools)) - offsets[owners]
    # Each (place, tool) is a random number of 64 bits; paths with the same sum are the same but by chance.
    told = mixed(mixed(places.astype(np.uint64)) ^ tools.astype(np.uint64))
    sums = np.zeros(len(offsets) - 1, dtype=np.uint64)
    np.add.at(sums, owners, told)
    return np.unique(sums, return_inverse=True)[1].astype(np.int64)


def path_success(paths: Places, outcomes: Column, groups: Places, seed: int) -> Column:
    """float64 [runs]: how likely each succeeds, by the runs of its path that are of other folds than it.

    Near-duplicates, of one group, are of one fold: what is predicted of a run never comes from itself.

    Args:
        paths: int64 [runs], from 0.
        outcomes: float64 [runs], 0 to 1.
        groups: int64 [runs].
        seed: of the folds.

    Returns:
        NaN where no other fold has the path; all NaN where there are fewer than two groups.
    """
    count = min(FOLDS, len(np.unique(groups)))
    if count < 2:
        return np.full(len(paths), np.nan)
    fold = folds(groups, count, seed)
    most = int(paths.max()) + 1
    cell = fold * most + paths
    good, runs = (summed(values, paths, most)[paths] for values in (outcomes, np.ones(len(paths))))
    mine, own = (summed(values, cell, count * most)[cell] for values in (outcomes, np.ones(len(paths))))
    others, seen = good - mine, runs - own
    usual = (outcomes.sum() - summed(outcomes, fold, count)[fold]) / (
        len(paths) - np.bincount(fold, minlength=count)[fold]
    )
    return np.where(seen > 0, (others + PRIOR_RUNS * usual) / (seen + PRIOR_RUNS), np.nan)


def run_priorities(paths: Places, outcomes: Column, groups: Places, seed: int) -> Priorities:
    """float64 [runs], in [0.01, 1]: how much each has to teach, by what is expected of its path.

    Where there are fewer than two groups nothing can be expected: 0.5, as without a model.
    """
    expected = path_success(paths, outcomes, groups, seed)
    trained = len(np.unique(groups)) > 1
    return priorities(td_errors(outcomes, np.clip(expected, 0.0, 1.0)), ~np.isnan(expected), trained)
