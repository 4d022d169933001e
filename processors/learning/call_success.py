"""What the look of arguments says of how a call ends, beside what its tool alone says (spec story 12.7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import orjson
from numpy.typing import NDArray

from pml.processors.learning.argument_success import ArgumentSuccess, Pattern
from pml.processors.learning.calls import Calls
from pml.processors.learning.choosing import GROUPS_LEAST
from pml.processors.learning.grouping import summed
from pml.processors.learning.intervals import interval, paired_interval, resampled_means
from pml.processors.learning.splits import folds

FOLDS: Final = 5
WITH: Final = "with arguments"
WITHOUT: Final = "without arguments"

Column = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class CallsJudged:
    """What two models of success said of calls that neither had seen, float64 [calls] each.

    `success` bool and `clusters` int64, the group of its trace, of each call.
    """

    with_arguments: Column
    without: Column
    success: NDArray[np.bool_]
    clusters: Places

    def report(self, seed: int) -> dict[str, Any]:
        """A row for each, what arguments give, and whether that is sure, as JSON-serialisable values.

        They are used only where the whole 95 % interval of what they give is above 0, of no fewer groups than
        let something learned serve (`GROUPS_LEAST`).
        """
        ends = self.success.astype(np.float64)
        errors = [(given - ends) ** 2 for given in (self.with_arguments, self.without)]
        low, high = paired_interval(errors[1], errors[0], self.clusters, seed)
        rows = {
            name: {
                "auc": round(area(given, self.success), 4),
                "brier": {
                    "mean": round(float(error.mean()), 4),
                    "interval": _rounded(interval(resampled_means(error, self.clusters, seed))),
                },
            }
            for name, given, error in zip((WITH, WITHOUT), self._both, errors, strict=True)
        }
        gain = {"brier": round(float((errors[1] - errors[0]).mean()), 4), "interval": _rounded((low, high))}
        return {
            "calls": len(ends),
            "learners": rows,
            "gain": gain,
            "used": low > 0 and self._groups >= GROUPS_LEAST,
        }

    @property
    def _groups(self) -> int:
        return len(np.unique(self.clusters))

    @property
    def _both(self) -> tuple[Column, Column]:
        return self.with_arguments, self.without


def judge_calls(calls: Calls, groups: Places, seed: int) -> CallsJudged | None:
    """Ask of each call once how it ends, of models that saw no call of its trace's group.

    Args:
        calls: with rows of traces.
        groups: int64 [traces], near-duplicates have the same.
        seed: of the folds.

    Returns:
        None where there is nothing to tell apart: all calls ended alike, or all traces are one group.
    """
    count = min(FOLDS, len(np.unique(groups)))
    if count < 2 or calls.success.all() or not calls.success.any():
        return None
    fold = folds(groups, count, seed)[calls.traces]
    found = np.zeros((2, len(calls)))
    for held in range(count):
        training, asked = calls.at(np.flatnonzero(fold != held)), np.flatnonzero(fold == held)
        for row, with_arguments in enumerate((True, False)):
            model = fit_calls(training, with_arguments=with_arguments)
            found[row, asked] = chances(model, calls.at(asked), with_arguments=with_arguments)
    return CallsJudged(found[0], found[1], calls.success, groups[calls.traces])


def fit_calls(calls: Calls, *, with_arguments: bool = True) -> ArgumentSuccess:
    """A model of how these end; without arguments it knows the tool alone."""
    kinds = calls.kinds()
    good, counts = summed(calls.success, kinds.of, len(kinds)), np.bincount(kinds.of, minlength=len(kinds))
    patterns = _read(kinds.patterns, with_arguments=with_arguments)
    return ArgumentSuccess.fit_counted(kinds.tools, patterns, good, counts.astype(np.float64))


def chances(model: ArgumentSuccess, calls: Calls, *, with_arguments: bool = True) -> Column:
    """float64 [calls]: how likely each succeeds."""
    kinds = calls.kinds()
    found = model.probabilities(kinds.tools, _read(kinds.patterns, with_arguments=with_arguments))
    return found[kinds.of]


def area(scores: Column, success: NDArray[np.bool_]) -> float:
    """Under the receiver's curve: how often one that succeeded has the higher score, ties half.

    By ranks (Mann & Whitney 1947), O(n log n); NaN where all ended alike.
    """
    good = int(success.sum())
    bad = len(success) - good
    if good == 0 or bad == 0:
        return float("nan")
    _, of, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    return float((ranks[of][success].sum() - good * (good + 1) / 2) / (good * bad))


def _read(patterns: Sequence[str], *, with_arguments: bool) -> list[Pattern]:
    return [orjson.loads(told) if told and with_arguments else None for told in patterns]


def _rounded(ends: tuple[float, float]) -> tuple[float, float]:
    return round(ends[0], 4), round(ends[1], 4)
