"""How sure a mean or a difference is: the bootstrap over clusters (Efron & Tibshirani 1993)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2_000
# Percent that an interval leaves out.
LEFT_OUT = 5.0
# Clusters drawn at once: 8 MB.
_DRAWN_AT_ONCE = 1_000_000

Column = NDArray[np.float64]


def resampled_means(
    values: Column, clusters: NDArray[np.int64], seed: int, resamples: int = RESAMPLES
) -> Column:
    """float64 [resamples]: means over values, whole clusters drawn with replacement.

    Values of one cluster (a trace, or a group of near-duplicates) are no independent evidence. For a paired
    comparison, give the differences: the same seed and clusters draw the same.

    Args:
        values: float64 [n].
        clusters: int64 [n], the cluster of each.
        seed: of the draws.
        resamples: how many means.

    Raises:
        ValueError: there are no values, or not as many clusters as values.
    """
    if len(values) == 0 or len(values) != len(clusters):
        raise ValueError(f"{len(values)} values of {len(clusters)} clusters: there is nothing to resample")
    names, of = np.unique(clusters, return_inverse=True)
    sums, counts = np.bincount(of, values), np.bincount(of)
    generator, means = np.random.default_rng(seed), np.empty(resamples)
    rows = max(1, _DRAWN_AT_ONCE // len(names))
    for start in range(0, resamples, rows):
        drawn = generator.integers(len(names), size=(min(rows, resamples - start), len(names)))
        means[start : start + rows] = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    return means


def interval(means: Column, together: int = 1) -> tuple[float, float]:
    """Between which two values 95 % of resampled means lie.

    Of so many intervals `together` all are to hold in 95 %, so each leaves out less (Bonferroni; Dunn 1961).
    """
    beyond = LEFT_OUT / together / 2
    low, high = np.percentile(means, (beyond, 100 - beyond))
    return float(low), float(high)


def paired_interval(
    one: Column, other: Column, clusters: NDArray[np.int64], seed: int, together: int = 1
) -> tuple[float, float]:
    """The interval of the mean of `one` less that of `other`, both float64 [n] for the same prefixes.

    95 %, for so many comparisons `together` (`interval`).

    Raises:
        ValueError: there are no values, or not as many of each.
    """
    if len(one) != len(other):
        raise ValueError(f"{len(one)} values cannot be paired with {len(other)}")
    return interval(resampled_means(one - other, clusters, seed), together)
