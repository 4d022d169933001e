"""Cosine names what is described as asked, nearest intents what followed where a like request stood."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.processors.learning import cosine
from pml.processors.learning.cosine import Cosine
from pml.processors.learning.nearest_intents import (
    NEIGHBOURS,
    SAME_LAST,
    SAME_LAST_TWO,
    WIDTH,
    NearestIntents,
)
from pml.processors.learning.traces import NO_TEXT, Vectors
from pml.processors.memory.embedding import unit
from tests.processors.learning.small_traces import SIZE, prefixes_of, trace_set


def points(seed: int, count: int) -> Vectors:
    return unit(np.random.default_rng(seed).normal(size=(count, 8)).astype(np.float32))


def described(seed: int = 1) -> Vectors:
    found = points(seed, SIZE)
    found[0] = 0
    return found


def test_cosine_is_the_softmax_of_cosines_to_text_and_last_item() -> None:
    items, texts = described(), points(2, 2)
    found = Cosine(items, last_share=-0.5, temperature=0.2)
    rows = found.probabilities(prefixes_of([1, 3], [], texts=texts))
    for row, text, last in ((rows[0], texts[0], items[3]), (rows[1], texts[1], items[0])):
        asked = text.astype(float) - 0.5 * last
        nearness = [asked @ item / np.linalg.norm(asked) for item in items[1:].astype(float)]
        odds = np.exp(np.array(nearness) / 0.2)
        assert row[1:] == pytest.approx(odds / odds.sum(), abs=1e-5)
        assert row[0] == 0


def test_cosine_learns_that_nothing_is_called_twice() -> None:
    items = described()
    texts = unit(items[[1, 2, 3]] + items[[2, 3, 4]])
    traces = trace_set([[1, 2], [2, 3], [3, 4]])
    found = Cosine.fit(traces, items, texts, 1)
    assert found.last_share < 0
    named = found.probabilities(traces.prefixes(traces.positions(), texts)).argmax(axis=1)
    assert named.tolist() == [2, 3, 4]


def test_of_many_sessions_of_one_length_cosine_is_chosen_on_every_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Text and last item name the second item, and never the third: so nothing is to be sure."""
    items = described()
    traces = trace_set([[1, 1, 2], [2, 2, 3], [3, 3, 4], [4, 4, 1]] * 20)
    texts = np.tile(items[[1, 2, 3, 4]], (20, 1))
    every = Cosine.fit(traces, items, texts, 1)
    monkeypatch.setattr(cosine, "FITTED_MOST", 80)
    found = Cosine.fit(traces, items, texts, 1)
    assert found.temperature == every.temperature == 0.5, "where only second items were asked about: 0.02"


def test_without_a_text_cosine_has_the_last_item_alone_and_what_has_no_text_is_not_named() -> None:
    items = described()
    items[4] = 0
    found = Cosine(items, 1.0, 0.1).probabilities(prefixes_of([2], [0], []))
    assert found[0].argmax() == 2
    assert found[0, 4] == 0
    assert found[1:].sum() == 0


def nearest_twin(lists: list[list[int]], texts: Vectors, history: list[int], text: Vectors) -> list[float]:
    """Compare with each place, one by one."""
    near = []
    for owner, items in enumerate(lists):
        for place, item in enumerate(items):
            if item:
                ours, theirs = (["none", "start", *past][::-1][:2] for past in (history, items[:place]))
                nearness = float(text.astype(float) @ texts[owner].astype(float))
                nearness += SAME_LAST * (ours[0] == theirs[0]) + SAME_LAST_TWO * (ours == theirs)
                near.append((nearness, item))
    votes = [0.0] * SIZE
    for nearness, item in sorted(near, key=lambda each: -each[0])[:NEIGHBOURS]:
        votes[item] += np.exp(nearness / WIDTH)
    return [vote / (sum(votes) or 1) for vote in votes]


@settings(max_examples=40)
@given(
    st.lists(st.lists(st.integers(0, SIZE - 1), max_size=4), min_size=1, max_size=5),
    st.lists(st.integers(0, SIZE - 1), max_size=3),
    st.integers(0, 50),
)
def test_nearest_intents_are_those_found_one_by_one(
    lists: list[list[int]], history: list[int], seed: int
) -> None:
    texts, asked = points(seed, len(lists)), points(seed + 1_000, 1)
    found = NearestIntents.fit(trace_set(lists), SIZE, texts)
    row = found.probabilities(prefixes_of(history, texts=asked))[0]
    assert row == pytest.approx(nearest_twin(lists, texts, history, asked[0]), abs=1e-5)


def test_what_weighs_nothing_or_has_no_text_is_no_neighbour() -> None:
    lists, texts = [[1, 1], [2, 2], [3, 3]], points(1, 3)
    traces = trace_set(lists, weights=[0.0, 1.0, 1.0], texts=[0, NO_TEXT, 2])
    found = NearestIntents.fit(traces, SIZE, texts).probabilities(prefixes_of([1], texts=texts[:1]))
    assert found[0].tolist() == [0, 0, 0, 1, 0]


def test_without_text_or_past_there_are_no_neighbours() -> None:
    texts = points(1, 1)
    fitted = NearestIntents.fit(trace_set([[1, 2]]), SIZE, texts)
    assert fitted.probabilities(prefixes_of([1])).sum() == 0
    assert fitted.probabilities(prefixes_of([1], texts=np.zeros_like(texts))).sum() == 0
    empty = NearestIntents.fit(trace_set([[]]), SIZE, texts)
    assert empty.probabilities(prefixes_of([1], texts=texts)).sum() == 0


@pytest.mark.parametrize("kind", [Cosine, NearestIntents])
def test_the_arrays_of_a_file_give_the_same_answers(kind: type[Cosine] | type[NearestIntents]) -> None:
    traces, texts, file = trace_set([[1, 2, 3], [2, 4]]), points(3, 2), io.BytesIO()
    fitted = (
        Cosine.fit(traces, described(), texts, 1)
        if kind is Cosine
        else NearestIntents.fit(traces, SIZE, texts)
    )
    np.savez(file, **fitted.to_arrays())
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        again = kind.from_arrays(dict(arrays))
    asked = prefixes_of([1], [2, 4], texts=points(4, 2))
    assert again.size == fitted.size == SIZE
    assert again.probabilities(asked).tolist() == fitted.probabilities(asked).tolist()
    with pytest.raises(ValueError, match="train it again"):
        kind.from_arrays({})
