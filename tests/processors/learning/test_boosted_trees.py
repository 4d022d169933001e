"""The trees that are kept say what xgboost says, and learn what no line can; others are refused."""

from __future__ import annotations

import numpy as np
import pytest
import xgboost

from pml.processors.learning.boosted_trees import BoostedTrees, Growth
from pml.processors.learning.softmax import NONE, shares


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of up to four candidates comes the one whose first feature is near 0; where none is, none."""
    generator = np.random.default_rng(seed)
    given = generator.normal(size=(400, 4, 3)).astype(np.float32)
    named = generator.random((400, 4)) < 0.9
    given[:, :, 0] = np.sign(given[:, :, 0]) * generator.uniform(1, 2, size=(400, 4))
    right = np.where(np.arange(400) % 10 > 0, generator.integers(4, size=400), NONE)
    right[~named[np.arange(400), right]] = NONE
    told = np.flatnonzero(right != NONE)
    given[told, right[told], 0] /= 10
    return given, named, right


def test_they_learn_what_no_line_can_and_say_what_xgboost_says(monkeypatch: pytest.MonkeyPatch) -> None:
    grown: list[xgboost.Booster] = []
    train = xgboost.train
    monkeypatch.setattr(xgboost, "train", lambda *a, **k: grown.append(train(*a, **k)) or grown[-1])
    found = BoostedTrees.fit(*drawn(1), seed=1)
    given, named, right = drawn(2)
    said = found.margins(given)
    told = grown[0].predict(xgboost.DMatrix(given.reshape(-1, 3)), output_margin=True)
    assert said.ravel() == pytest.approx(told, abs=1e-4)
    likely = shares(said, named)
    best = np.where(likely.max(axis=1) > 0.5, likely.argmax(axis=1), NONE)
    assert np.mean(best == right) > 0.9


def test_several_forests_say_the_mean_of_each() -> None:
    growth = Growth(forests=2, rounds=5, rate=0.1)
    both = BoostedTrees.fit(*drawn(1), seed=3, growth=growth)
    each = [BoostedTrees.fit(*drawn(1), seed=seed, growth=Growth(1, 5, 0.1)) for seed in (6, 7)]
    assert len(both.roots) == 10
    given, _, _ = drawn(2)
    means = (each[0].margins(given) + each[1].margins(given)) / 2
    assert both.margins(given) == pytest.approx(means, abs=1e-5)
    assert each[0].margins(given).tolist() != each[1].margins(given).tolist()


def test_the_same_seed_grows_the_same_trees_and_arrays_say_the_same() -> None:
    one, other, third = (BoostedTrees.fit(*drawn(1), seed=seed) for seed in (1, 1, 2))
    assert one.values.tolist() == other.values.tolist() != third.values.tolist()
    again = BoostedTrees.from_arrays(one.to_arrays(), 3)
    given, _, _ = drawn(2)
    assert again.margins(given).tolist() == one.margins(given).tolist()


def test_trees_that_do_not_fit_are_refused() -> None:
    found = BoostedTrees.fit(*drawn(1), seed=1).to_arrays()
    with pytest.raises(ValueError, match="train it again"):
        BoostedTrees.from_arrays(found, 2)
    with pytest.raises(ValueError, match="train it again"):
        BoostedTrees.from_arrays(found | {"tree_lefts": np.zeros_like(found["tree_lefts"])}, 3)
    with pytest.raises(ValueError, match="train it again"):
        BoostedTrees.from_arrays(found | {"tree_values": found["tree_values"][1:]}, 3)
    with pytest.raises(ValueError, match="train it again"):
        BoostedTrees.from_arrays(found | {"tree_roots": found["tree_roots"] - 1}, 3)


def test_nothing_is_learned_of_nothing() -> None:
    found = BoostedTrees.fit(
        np.zeros((0, 4, 3)), np.zeros((0, 4), dtype=bool), np.zeros(0, dtype=np.int64), seed=1
    )
    assert not found.margins(np.ones((2, 4, 3))).any()
    assert len(BoostedTrees.from_arrays(found.to_arrays(), 3).roots) == 0
