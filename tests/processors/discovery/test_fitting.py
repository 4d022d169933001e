"""Weights are learned from what was right, and scores are probabilities."""

from __future__ import annotations

import numpy as np
import pytest

from pml.processors.discovery.fitting import Asked, fit
from pml.processors.discovery.ranking import SIGNALS, evidence, probability


def drawn(count: int, seed: int) -> list[Asked]:
    """Of ten candidates one is right, and the second signal mostly tells which; the others are noise."""
    generator, found = np.random.default_rng(seed), []
    for _ in range(count):
        signals = generator.normal(size=(10, len(SIGNALS)))
        odds = np.exp(2 * signals[:, 1])
        right = np.arange(10) == generator.choice(10, p=odds / odds.sum())
        found.append(Asked(signals, right))
    return found


def test_the_signal_that_tells_gets_its_weight_and_noise_none() -> None:
    weights = fit([drawn(400, 1)])
    slopes = weights.slopes
    assert slopes[1] > 1
    assert np.all(np.abs(np.delete(slopes, 1)) < 0.3)


def test_scores_are_how_often_it_is_right() -> None:
    weights = fit([drawn(600, 2)])
    tested = drawn(600, 3)
    scores = np.concatenate([probability(evidence(asked.signals, weights), weights) for asked in tested])
    right = np.concatenate([asked.right for asked in tested])
    for low, high in ((0, 0.1), (0.1, 0.4), (0.4, 1)):
        within = (scores >= low) & (scores < high)
        assert right[within].mean() == pytest.approx(scores[within].mean(), abs=0.08)


def test_a_large_set_counts_as_much_as_a_small_one() -> None:
    small, large = drawn(20, 4), drawn(20, 5)
    once, often = fit([small, large]), fit([small, large * 10])
    assert often.slopes == pytest.approx(once.slopes, abs=1e-6)


def test_nothing_teaches_nothing() -> None:
    with pytest.raises(ValueError, match="nothing to learn from"):
        fit([[]])
