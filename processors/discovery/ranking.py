"""From signals to one score: a sum with learned weights, as a probability."""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

Signals = NDArray[np.float64]

TEXT_SIGNALS = ("words", "meaning", "name", "clause_words", "clause_meaning")
SIGNALS = (*TEXT_SIGNALS, "together", "alike")
DIGITS = 6


@dataclass(frozen=True, slots=True)
class Weights:
    """What a unit of each signal is worth in log odds, and the log odds where all are zero."""

    words: float
    meaning: float
    name: float
    clause_words: float
    clause_meaning: float
    together: float
    alike: float
    bias: float

    @property
    def slopes(self) -> Signals:
        """The weights in the order of `SIGNALS`."""
        return np.array(astuple(self)[:-1])


# Learned by benchmarks/discovery from the open part of nine public data sets, each counting the same.
DEFAULT = Weights(
    words=0.13,
    meaning=0.21,
    name=0.11,
    clause_words=0.08,
    clause_meaning=0.17,
    together=2.7,
    alike=2.25,
    bias=-5.0,
)


def evidence(signals: Signals, weights: Weights) -> NDArray[np.float64]:
    """Log odds of rows of signals; text alone where only the text's signals are given."""
    found: NDArray[np.float64] = signals @ weights.slopes[: signals.shape[1]]
    return found


def probability(log_odds: NDArray[np.float64], weights: Weights) -> NDArray[np.float64]:
    """Scores from 0 to 1, rounded: the last digits of a product differ with how many rows it has."""
    found: NDArray[np.float64] = 1 / (1 + np.exp(-np.clip(log_odds + weights.bias, -50, 50)))
    return np.round(found, DIGITS)
