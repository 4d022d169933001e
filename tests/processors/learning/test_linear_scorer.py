"""Weights follow the slope of the loss, and the arrays say the same."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from pml.processors.discovery.fitting import SHRINKAGE
from pml.processors.learning.linear_scorer import LinearScorer, Loss, standardised
from pml.processors.learning.softmax import NONE, shares


def test_slope_and_curvature_are_those_of_the_loss() -> None:
    generator = np.random.default_rng(1)
    rows = generator.normal(size=(6, 4, 3)).astype(np.float32)
    named = generator.random((6, 4)) < 0.8
    named[0] = False
    right = np.array([int(np.argmax(each)) if each.any() else NONE for each in named])
    weights = generator.normal(size=3)

    def twin(at: np.ndarray) -> float:
        total = 0.0
        for row, which, told in zip(rows.astype(float), named, right, strict=True):
            odds = np.exp(row @ at) * which
            total -= log((odds[told] if told != NONE else 1) / (1 + odds.sum()))
        return total / len(rows) + 0.5 * SHRINKAGE * float(at @ at)

    found = Loss(rows[named], named, right)
    assert found.sloped(weights)[0] == pytest.approx(twin(weights), abs=1e-5)
    steps = 1e-5 * np.eye(3)
    numeric = [(twin(weights + step) - twin(weights - step)) / 2e-5 for step in steps]
    assert found.sloped(weights)[1] == pytest.approx(numeric, abs=1e-4)
    wider = 1e-2 * np.eye(3)
    bent = [(found.sloped(weights + step)[1] - found.sloped(weights - step)[1]) / 2e-2 for step in wider]
    assert found.curvature(weights) == pytest.approx(np.array(bent), abs=1e-3)
    least = found.least()
    assert all(twin(least) <= twin(least + step) for step in (*wider, *-wider))
    assert np.all(shares(rows @ weights, named).sum(axis=1) < 1)


def test_standardised_features_end_with_ones() -> None:
    found = standardised(np.full((1, 2, 3), 4.0), np.full(3, 2.0), np.full(3, 0.5))
    assert found.tolist() == [[[4, 4, 4, 1]] * 2]


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of three candidates comes the one whose first feature is largest; the second feature says nothing."""
    given = np.random.default_rng(seed).normal(size=(200, 3, 2)).astype(np.float32)
    return given, np.ones((200, 3), dtype=bool), given[:, :, 0].argmax(axis=1)


def test_it_learns_what_decides_and_its_arrays_say_the_same() -> None:
    given, named, right = drawn(1)
    found = LinearScorer.fit(given, named, right)
    assert found.weights[0] > 10 * abs(found.weights[1])
    others, _, came = drawn(2)
    assert np.mean(found.margins(others).argmax(axis=1) == came) > 0.9
    again = LinearScorer.from_arrays(found.to_arrays(), 2)
    assert again.margins(others).tolist() == found.margins(others).tolist()
    with pytest.raises(ValueError, match="other features"):
        LinearScorer.from_arrays(found.to_arrays(), 3)


def test_nothing_is_learned_of_nothing() -> None:
    found = LinearScorer.fit(np.zeros((0, 3, 2)), np.zeros((0, 3), dtype=bool), np.zeros(0, dtype=np.int64))
    assert not found.margins(np.ones((1, 3, 2))).any()
