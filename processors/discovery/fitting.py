"""Learning the weights of the signals from intents whose tools are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pml.processors.discovery.ranking import SIGNALS, Signals, Weights

Column = NDArray[np.float64]

# Adam (Kingma & Ba 2015) with the usual constants; the loss is convex and has eight unknowns.
STEPS = 400
RATE = 0.05
MEAN_DECAY, SQUARE_DECAY = 0.9, 0.99
SHRINKAGE = 1e-3


@dataclass(frozen=True, slots=True)
class Asked:
    """One intent: a row of signals for each candidate, and which of them were right (at least one)."""

    signals: Signals
    right: NDArray[np.bool_]


def fit(sets: Sequence[Sequence[Asked]]) -> Weights:
    """Weights for all sets, each counting the same however large it is.

    The slopes maximise the likelihood that a right candidate is drawn among all (softmax over each intent's);
    then slope and bias of a logistic curve make probabilities of the sums (Platt 1999).

    Raises:
        ValueError: there is no set with an intent.
    """
    given = [_Batch.of(asked) for asked in sets if asked]
    if not given:
        raise ValueError("there is nothing to learn from")
    slopes = descended(np.zeros(len(SIGNALS)), lambda found: _listwise(found, given))
    curve = descended(np.array([1.0, 0.0]), lambda found: _logistic(found, slopes, given))
    return Weights(*(float(value) for value in (*(slopes * curve[0]), curve[1])))


@dataclass(frozen=True, slots=True)
class _Batch:
    """The candidates of all intents one below the other; `starts` says where those of each begin."""

    signals: Signals
    right: Column
    starts: NDArray[np.int64]
    counts: NDArray[np.int64]

    @staticmethod
    def of(asked: Sequence[Asked]) -> _Batch:
        counts = np.array([len(each.right) for each in asked], dtype=np.int64)
        return _Batch(
            np.concatenate([each.signals for each in asked]),
            np.concatenate([each.right for each in asked]).astype(np.float64),
            np.cumsum(counts) - counts,
            counts,
        )

    def spread(self, of_intents: Column) -> Column:
        """A value of each intent, once for each of its candidates."""
        return np.repeat(of_intents, self.counts)

    def shares(self, values: Column) -> Column:
        """Values as shares of their intent's sum."""
        return values / self.spread(np.add.reduceat(values, self.starts))


def _listwise(slopes: Column, batches: Sequence[_Batch]) -> Column:
    """The slope of the loss: where candidates are drawn, less where the right ones are."""
    found = SHRINKAGE * slopes
    for batch in batches:
        sums = batch.signals @ slopes
        odds = np.exp(sums - batch.spread(np.maximum.reduceat(sums, batch.starts)))
        found = found + (batch.shares(odds) - batch.shares(batch.right)) @ batch.signals / len(batch.counts)
    return found


def _logistic(curve: Column, slopes: Column, batches: Sequence[_Batch]) -> Column:
    """The slope of the loss of a logistic curve over the sums."""
    found = np.zeros(2)
    for batch in batches:
        sums = batch.signals @ slopes
        error = 1 / (1 + np.exp(-np.clip(curve[0] * sums + curve[1], -50, 50))) - batch.right
        found += np.array([error @ sums, error.sum()]) / len(batch.counts)
    return found


def descended(start: Column, slope: Callable[[Column], Column]) -> Column:
    """Where Adam comes to from a place in so many steps."""
    found, mean, square = start, np.zeros_like(start), np.zeros_like(start)
    for step in range(1, STEPS + 1):
        down = slope(found)
        mean = MEAN_DECAY * mean + (1 - MEAN_DECAY) * down
        square = SQUARE_DECAY * square + (1 - SQUARE_DECAY) * down**2
        size = np.sqrt(square / (1 - SQUARE_DECAY**step)) + 1e-8
        found = found - RATE * mean / (1 - MEAN_DECAY**step) / size
    return found
