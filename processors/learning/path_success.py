"""How likely a run succeeds that takes a path, by the runs that took it before: what priorities compare with.

A path is the tools of a run's tasks, in the order in which they ended, those among them that were skipped: a
run that failed early would else be on a path of its own, whose length told its end.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.grouping import summed
from pml.processors.learning.priorities import Priorities, priorities
from pml.processors.learning.splits import mixed
from pml.processors.learning.td_error import td_errors

# A path that was taken once is between what came of it and what comes of any run.
PRIOR_RUNS: Final = 1.0

Column = NDArray[np.float64]
Places = NDArray[np.int64]


def path_ids(tools: NDArray[np.integer], offsets: Places) -> Places:
    """int64 [runs], from 0: runs with the same number have the same tools in the same order.

    Args:
        tools: [tasks], the number of each task's tool, those of a run together.
        offsets: int64 [runs + 1], run i has the tasks `offsets[i]` to `offsets[i + 1]`.
    """
    owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    places = np.arange(len(tools)) - offsets[owners]
    # Each (place, tool) is a random number of 64 bits; paths with the same sum are the same but by chance.
    told = mixed(mixed(places.astype(np.uint64)) ^ tools.astype(np.uint64))
    sums = np.zeros(len(offsets) - 1, dtype=np.uint64)
    np.add.at(sums, owners, told)
    return np.unique(sums, return_inverse=True)[1].astype(np.int64)


def path_success(paths: Places, outcomes: Column, groups: Places) -> Column:
    """float64 [runs]: how likely each succeeds, by the runs of its path that are no near-duplicates of it.

    What is predicted of a run never comes from its own group, and so never from itself.

    Args:
        paths: int64 [runs], from 0.
        outcomes: float64 [runs], 0 to 1.
        groups: int64 [runs].

    Returns:
        NaN where no other group has the path.
    """
    names, group = np.unique(groups, return_inverse=True)
    both = np.unique(paths * len(names) + group, return_inverse=True)[1]
    good, runs = _of_others(outcomes, paths, both)
    all_good, all_runs = _of_others(outcomes, np.zeros(len(paths), dtype=np.int64), group)
    usual = all_good / np.maximum(all_runs, 1)
    return np.where(runs > 0, (good + PRIOR_RUNS * usual) / (runs + PRIOR_RUNS), np.nan)


def _of_others(outcomes: Column, whole: Places, own: Places) -> tuple[Column, Column]:
    """float64 [runs] each: the outcomes and the number of runs of the same `whole` but not the same `own`."""
    count = len(outcomes)
    good, runs = (
        summed(values, whole, count)[whole] - summed(values, own, count)[own]
        for values in (outcomes, np.ones(count))
    )
    return good, runs


def run_priorities(paths: Places, outcomes: Column, groups: Places) -> Priorities:
    """float64 [runs], in [0.01, 1]: how much each has to teach, by what is expected of its path.

    Where there are fewer than two groups nothing can be expected: 0.5, as without a model.
    """
    expected = path_success(paths, outcomes, groups)
    trained = len(np.unique(groups)) > 1
    return priorities(td_errors(outcomes, np.clip(expected, 0.0, 1.0)), ~np.isnan(expected), trained)
