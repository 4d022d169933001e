"""Weights of a match are those under which what was meant is likeliest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.discovery.fitting import SHRINKAGE
from pml.processors.discovery.match_fitting import Meant, _Batch, fit_matching, slope
from pml.processors.discovery.matching import MatchWeights, confidences

TRUE = MatchWeights(shared_words=3.0, weakest_tool=1.0, other_tool=-1.0, bias=-1.0)


def meant(number: int, weights: MatchWeights = TRUE) -> Meant:
    """An intent whose meaning was drawn with these weights."""
    drawn = np.random.default_rng(number)
    rows = drawn.normal(size=(1 + number % 4, 3))
    shares = confidences(rows, weights)
    choice = drawn.choice(len(rows) + 1, p=np.append(shares, 1 - shares.sum()))
    return Meant(rows, np.arange(len(rows)) == choice)


def loss(weights: np.ndarray, sets: list[list[Meant]]) -> float:
    """One intent after the other: minus the logarithm of the probability of what was meant."""
    found = 0.0
    for asked in sets:
        for each in asked:
            sums = each.evidence @ weights[:-1] + weights[-1]
            total = np.log(1 + np.exp(sums).sum())
            found += (total - float(sums @ each.right)) / len(asked)
    return found + SHRINKAGE * float(weights @ weights) / 2


def test_weights_that_drew_what_was_meant_are_found() -> None:
    found = fit_matching([[meant(number) for number in range(4_000)]])
    assert [found.shared_words, found.weakest_tool, found.other_tool, found.bias] == pytest.approx(
        [3, 1, -1, -1], abs=0.25
    )


@given(st.lists(st.integers(0, 1_000), min_size=1, max_size=6), st.integers(0, 100))
def test_the_slope_is_that_of_the_loss(numbers: list[int], seed: int) -> None:
    sets = [[meant(number) for number in numbers], [meant(number + 1) for number in numbers]]
    weights = np.random.default_rng(seed).normal(size=4)
    steps = np.eye(4) * 1e-6
    twin = [(loss(weights + step, sets) - loss(weights - step, sets)) / 2e-6 for step in steps]
    assert slope(weights, [_Batch.of(asked) for asked in sets]) == pytest.approx(twin, abs=1e-5)


def test_without_an_intent_there_is_nothing_to_learn() -> None:
    with pytest.raises(ValueError, match="nothing to learn"):
        fit_matching([[], []])
