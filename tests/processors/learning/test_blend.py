"""Trees and a line together say what neither says alone, weighed by answers that were not learned of."""

from __future__ import annotations

import numpy as np
import pytest

from pml.processors.learning import blend as module
from pml.processors.learning.blend import PARTS, Blend
from pml.processors.learning.boosted_trees import BoostedTrees
from pml.processors.learning.linear_scorer import LinearScorer
from pml.processors.learning.softmax import NONE, shares

Drawn = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def drawn(seed: int, count: int = 300) -> Drawn:
    """Four candidates: likely is what has most of six features together, if its last one is near 0."""
    generator = np.random.default_rng(seed)
    given = generator.normal(size=(count, 4, 7)).astype(np.float32)
    named = generator.random((count, 4)) < 0.9
    odds = 2 * given[:, :, :6].sum(axis=2) - 6 * (np.abs(given[:, :, 6]) > 0.7)
    likely = shares(odds, named)
    right = np.array([generator.choice(5, p=[*row, max(0.0, 1 - row.sum())]) for row in likely])
    return given, named, np.where(right == 4, NONE, right), np.arange(count) % 5


def lost(margins: np.ndarray, named: np.ndarray, right: np.ndarray) -> float:
    """The mean of −log of what came, "none" included."""
    likely = shares(margins, named)
    told = np.where(right == NONE, 1 - likely.sum(axis=1), likely[np.arange(len(right)), right])
    return float(-np.log(np.maximum(told, 1e-9)).mean())


def test_together_they_say_more_than_each_alone() -> None:
    found = Blend.fit(*drawn(1), seed=1)
    given, named, right, _ = drawn(2, 2_000)
    both = lost(found.margins(given), named, right)
    assert both < lost(found.trees.margins(given), named, right) - 0.01
    assert both < lost(found.line.margins(given), named, right) - 0.01


def test_what_weighs_answers_saw_none_of_their_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    given, named, right, folds = drawn(1)
    given[:, :, 0] = folds[:, None]
    learned_of: dict[int, set[float]] = {}
    fit, margins, asked = LinearScorer.fit, LinearScorer.margins, []

    def fit_seen(features: np.ndarray, *rest: np.ndarray) -> LinearScorer:
        scorer = fit(features, *rest)
        learned_of[id(scorer)] = set(features[:, 0, 0].tolist())
        return scorer

    def margins_seen(self: LinearScorer, features: np.ndarray) -> np.ndarray:
        own = set(features[:, 0, 0].tolist())
        assert not own & learned_of[id(self)]
        asked.append(own)
        return margins(self, features)

    monkeypatch.setattr(LinearScorer, "fit", fit_seen)
    monkeypatch.setattr(LinearScorer, "margins", margins_seen)
    Blend.fit(given, named, right, folds, seed=1)
    assert len(asked) == PARTS
    assert set.union(*asked) == set(range(5))


def test_the_same_seed_makes_the_same_and_arrays_say_the_same() -> None:
    one, other, third = (Blend.fit(*drawn(1), seed=seed) for seed in (1, 1, 2))
    given = drawn(2)[0]
    assert one.margins(given).tolist() == other.margins(given).tolist() != third.margins(given).tolist()
    again = Blend.from_arrays(one.to_arrays(), 7)
    assert again.margins(given).tolist() == one.margins(given).tolist()
    arrays = one.to_arrays()
    with pytest.raises(ValueError, match="other features"):
        Blend.from_arrays(arrays | {"blend.means": np.zeros(3)}, 7)
    with pytest.raises(ValueError, match="train it again"):
        Blend.from_arrays({name: arrays[name] for name in arrays if name != "blend.weights"}, 7)


def test_nothing_is_learned_of_nothing() -> None:
    none = Blend.fit(
        np.zeros((0, 4, 7)), np.zeros((0, 4), dtype=bool), np.zeros(0, np.int64), np.zeros(0, np.int64), 1
    )
    assert not none.margins(np.ones((2, 4, 7))).any()


def test_one_question_is_answered_as_among_many() -> None:
    found = Blend.fit(*drawn(1), seed=1)
    given = drawn(2)[0]
    alone = [found.margins(given[row : row + 1])[0].tolist() for row in range(20)]
    assert np.array(alone) == pytest.approx(found.margins(given)[:20], abs=1e-4)
    assert module.FORESTS.forests > 1
    assert isinstance(found.trees, BoostedTrees)
