"""Learning the weights of a match from intents of which is known what they meant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pml.processors.discovery.fitting import SHRINKAGE, descended
from pml.processors.discovery.matching import EVIDENCE, Column, Evidence, MatchWeights


@dataclass(frozen=True, slots=True)
class Meant:
    """One intent: a row of evidence for each capability, and which was meant; none where all are false."""

    evidence: Evidence
    right: NDArray[np.bool_]


def fit_matching(sets: Sequence[Sequence[Meant]]) -> MatchWeights:
    """Weights for all sets, each counting the same: those under which what was meant is likeliest.

    Raises:
        ValueError: there is no set with an intent.
    """
    given = [_Batch.of(meant) for meant in sets if meant]
    if not given:
        raise ValueError("there is nothing to learn from")
    found = descended(np.zeros(len(EVIDENCE) + 1), lambda weights: slope(weights, given))
    return MatchWeights(*(float(value) for value in found))


@dataclass(frozen=True, slots=True)
class _Batch:
    """The candidates of all intents one below the other; `starts` says where those of each begin."""

    rows: Evidence
    right: Column
    starts: NDArray[np.int64]
    counts: NDArray[np.int64]

    @staticmethod
    def of(meant: Sequence[Meant]) -> _Batch:
        counts = np.array([len(each.right) for each in meant], dtype=np.int64)
        rows = np.concatenate([each.evidence for each in meant])
        return _Batch(
            np.column_stack((rows, np.ones(len(rows)))),
            np.concatenate([each.right for each in meant]).astype(np.float64),
            np.cumsum(counts) - counts,
            counts,
        )


def slope(weights: Column, batches: Sequence[_Batch]) -> Column:
    """The slope of the loss: where probability lies, less where it should."""
    found = SHRINKAGE * weights
    for batch in batches:
        sums = batch.rows @ weights
        most = np.maximum(np.maximum.reduceat(sums, batch.starts), 0.0)
        odds = np.exp(sums - np.repeat(most, batch.counts))
        totals = np.add.reduceat(odds, batch.starts) + np.exp(-most)
        shares = odds / np.repeat(totals, batch.counts)
        found = found + (shares - batch.right) @ batch.rows / len(batch.counts)
    return found
