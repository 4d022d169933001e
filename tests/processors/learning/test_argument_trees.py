"""Trees choose a value by what speaks for it, in cases that they did not see, where they are better."""

from __future__ import annotations

import numpy as np
import pytest

from pml.processors.learning import argument_choice, argument_trees
from pml.processors.learning.argument_choice import FEATURES, VALUES_MOST, Values, learned_weights, shares
from pml.processors.learning.argument_sources import ArgumentSources
from pml.processors.learning.argument_trees import cross_grown, grown, right_cases, surely_more, tree_shares
from pml.processors.learning.scene import Past
from pml.schemas.canonical import canonical_json


def drawn(cases: int, seed: int) -> Values:
    """Of three values the one whose context is near 0 is right; how often sources were right says nothing."""
    generator = np.random.default_rng(seed)
    owners = np.repeat(np.arange(cases) * 2, 3)
    contexts = np.sign(generator.normal(size=(3 * cases, 1))) * generator.uniform(1, 2, size=(3 * cases, 1))
    right = np.zeros(3 * cases, dtype=bool)
    right[np.arange(cases) * 3 + generator.integers(3, size=cases)] = True
    contexts[right] /= 10
    features = generator.normal(size=(3 * cases, 5))
    return Values(
        owners, np.tile(np.arange(3, dtype=np.int32), cases), features, right, contexts.astype("f4")
    )


def test_they_name_the_right_value_of_cases_that_they_did_not_see() -> None:
    found = drawn(200, 1)
    folds = (found.owners // 2) % 5
    said = cross_grown(found, folds, 5)
    assert right_cases(found, said).sum() > 180
    others = drawn(50, 2)
    told = tree_shares(grown(found), others)
    assert right_cases(others, told).sum() > 45
    sums = np.bincount(others.owners // 2, told)
    assert np.all((sums > 0) & (sums < 1))
    assert right_cases(others, np.zeros(150)).sum() < 30
    assert tree_shares(grown(found), others.of(slice(0, 0))).tolist() == []
    assert VALUES_MOST >= 3


def in_turns(cases: int, seed: int) -> Values:
    """Cases of two parameters in turns: of one the second feature says what is right, else the third."""
    generator = np.random.default_rng(seed)
    owners = np.repeat(np.arange(cases), 2)
    right = np.zeros((cases, 2), dtype=bool)
    right[np.arange(cases), generator.integers(2, size=cases)] = True
    features = generator.normal(size=(2 * cases, FEATURES)) / 10
    features[:, -1] = 1
    features[np.arange(2 * cases), 1 + owners % 2] = np.where(right.ravel(), 2, -2)
    return Values(
        owners,
        np.tile(np.arange(2, dtype="i4"), cases),
        features,
        right.ravel(),
        np.zeros((2 * cases, 1), "f4"),
    )


@pytest.mark.parametrize("way", ["weights", "trees"])
def test_of_many_cases_every_parameter_is_learned_from(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """Also where every second case is one of the same parameter, and there is room for half of them."""
    for module in (argument_choice, argument_trees):
        monkeypatch.setattr(module, "CASES_MOST", 100)
    found, others = in_turns(200, 1), in_turns(100, 2)
    said = shares(learned_weights(found), others) if way == "weights" else tree_shares(grown(found), others)
    right = right_cases(others, said)
    assert min(right[::2].mean(), right[1::2].mean()) > 0.9


def test_better_is_what_chance_does_not_explain() -> None:
    right = np.arange(100) < 60
    worse = right & (np.arange(100) >= 10)
    assert surely_more(right, worse)
    assert not surely_more(worse, right)
    assert not surely_more(right, right)
    assert not surely_more(right, right & (np.arange(100) >= 3))


def sessions(count: int) -> tuple[list[list[Past]], list[list[str]]]:
    """The amount is the number that the text says before its name; elsewhere in it stand others."""
    generator = np.random.default_rng(3)
    told, texts = [], []
    for _ in range(count):
        wanted, other, third = (int(each) for each in generator.choice(900, 3, replace=False) + 100)
        pieces = [f"add {other} points", f"take {wanted} as the amount", f"send {third} mails"]
        generator.shuffle(pieces)
        told.append([Past("shop:open", {}, {}), Past("shop:pay", {"amount": wanted}, {})])
        texts.append(["", ", then ".join(pieces)])
    return told, texts


def test_sources_choose_by_trees_where_those_are_better_and_arrays_say_the_same() -> None:
    schema = {
        "shop:pay": {"properties": {"amount": {"type": "integer"}}, "required": ["amount"]},
        "shop:open": {"properties": {}},
    }
    past, texts = sessions(80)
    found = ArgumentSources.fit(past, texts, schema)
    assert found.trees is not None
    again = ArgumentSources.from_arrays(found.to_arrays())
    others, requests = sessions(100)
    right = 0
    for (opened, paid), (_, text) in zip(others[80:], requests[80:], strict=True):
        (guess, *_) = found.guesses("shop:pay", [opened], text)
        right += guess.arguments == paid.arguments
        (same, *_) = again.guesses("shop:pay", [opened], text)
        assert canonical_json(dict(same.arguments)) == canonical_json(dict(guess.arguments))
        assert same.confidence == pytest.approx(guess.confidence)
    assert right >= 18
