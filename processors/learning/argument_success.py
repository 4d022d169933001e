"""Whether a call will succeed, by what its arguments look like: a logistic regression over their pattern.

A feature that few calls had is worth little: weights are drawn to 0 (ridge), and a tool's own weight is
shared by all its calls. What it gives for a call is a feature of a ranker too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.argument_patterns import features_of
from pml.processors.learning.candidates import fitting
from pml.processors.learning.grouping import summed
from pml.processors.learning.vocabulary import UNKNOWN, Vocabulary
from pml.schemas.argument_pattern import ArgumentPattern

# Newton's method with a diagonal bound of the curvature (Böhning & Lindsay 1988): no step is too long.
STEPS: Final = 200
RIDGE: Final = 0.5
FEATURES_MOST: Final = 100_000

Column = NDArray[np.float64]
Pattern = ArgumentPattern | Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, eq=False)
class ArgumentSuccess:
    """`weights` float64 [size of the vocabulary]; that of `UNKNOWN` is the bias of every call."""

    vocabulary: Vocabulary
    weights: Column

    @classmethod
    def fit(
        cls, tools: Sequence[str], patterns: Sequence[Pattern], success: NDArray[np.bool_]
    ) -> ArgumentSuccess:
        """Learn of calls that ended.

        Args:
            tools: that of each call.
            patterns: of its arguments, as events and traces have them; None: "without arguments".
            success: bool [calls].

        Raises:
            ValueError: the columns have different lengths.
        """
        if not len(tools) == len(patterns) == len(success):
            raise ValueError("each call has a tool, a pattern and an end")
        return cls.fit_counted(tools, patterns, success.astype(np.float64), np.ones(len(success)))

    @classmethod
    def fit_counted(
        cls, tools: Sequence[str], patterns: Sequence[Pattern], good: Column, counts: Column
    ) -> ArgumentSuccess:
        """The same of calls that are alike, counted: as if each were there as often as it was made.

        Args:
            tools: that of each kind of call.
            patterns: likewise, of its arguments.
            good: float64 [kinds], how many succeeded.
            counts: float64 [kinds], how many there were.

        Raises:
            ValueError: the columns have different lengths.
        """
        if not len(tools) == len(patterns) == len(good) == len(counts):
            raise ValueError("each call has a tool, a pattern and an end")
        named = [features_of(tool, pattern) for tool, pattern in zip(tools, patterns, strict=True)]
        counted: dict[str, float] = {}
        for each, count in zip(named, counts.tolist(), strict=True):
            for name in each:
                counted[name] = counted.get(name, 0) + count
        kept = sorted(counted, key=lambda name: (-counted[name], name))[:FEATURES_MOST]
        vocabulary = Vocabulary.of(kept)
        rows, columns = _places(vocabulary, named)
        return cls(vocabulary, _learned((rows, columns), good, counts, vocabulary.size))

    def probabilities(self, tools: Sequence[str], patterns: Sequence[Pattern]) -> Column:
        """float64 [calls]: how likely each succeeds."""
        named = [features_of(tool, pattern) for tool, pattern in zip(tools, patterns, strict=True)]
        rows, columns = _places(self.vocabulary, named)
        return _curve(summed(self.weights[columns], rows, len(named)))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """`weights`, and the arrays of the vocabulary."""
        return {"weights": self.weights, **self.vocabulary.to_arrays()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> ArgumentSuccess:
        """What `to_arrays` wrote.

        Raises:
            ValueError: an array is missing or does not fit: train the model again.
        """
        weights = fitting(arrays, "weights", np.float64, 1)
        vocabulary = Vocabulary.from_arrays(arrays)
        if len(weights) != vocabulary.size:
            raise ValueError("the model has not one weight for each feature: train it again")
        return cls(vocabulary, weights)


def _places(
    vocabulary: Vocabulary, named: Sequence[Sequence[str]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The calls and the features that hold of them, pair by pair; the bias holds of each, what is unknown of
    none."""
    rows = np.repeat(np.arange(len(named)), [len(each) for each in named])
    columns = vocabulary.ids([name for each in named for name in each]).astype(np.int64)
    known = columns != UNKNOWN
    bias = np.arange(len(named))
    return np.concatenate((rows[known], bias)), np.concatenate((columns[known], np.full(len(named), UNKNOWN)))


def _learned(
    places: tuple[NDArray[np.int64], NDArray[np.int64]], good: Column, counts: Column, size: int
) -> Column:
    weights = np.zeros(size)
    if not len(good):
        return weights
    rows, columns = places
    held = np.bincount(rows, minlength=len(good)) * counts
    steepest = np.bincount(columns, held[rows], minlength=size) / 4 + RIDGE
    for _ in range(STEPS):
        error = good - counts * _curve(summed(weights[columns], rows, len(good)))
        weights = weights + (summed(error[rows], columns, size) - RIDGE * weights) / steepest
    return weights


def _curve(sums: Column) -> Column:
    return np.asarray(1 / (1 + np.exp(-np.clip(sums, -50, 50))))
