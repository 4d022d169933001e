"""What counts agrees with a dictionary of counts, gives probabilities, and is the same from its arrays."""

from __future__ import annotations

import io
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.processors.learning.candidates import Learned
from pml.processors.learning.contexts import ContextCounts
from pml.processors.learning.discounting import Discounting
from pml.processors.learning.markov import Markov
from pml.processors.learning.popularity import Popularity
from pml.processors.learning.success_prior import PRIOR_TRACES, SuccessPrior
from pml.processors.learning.traces import TraceSet
from tests.processors.learning.small_traces import LISTS, SIZE, prefixes_of, trace_set

HISTORIES = st.lists(st.lists(st.integers(0, SIZE - 1), max_size=5), min_size=1, max_size=3)
WEIGHTS = st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=6, max_size=6)
Counted = dict[tuple[object, ...], Counter[int]]


def counted(lists: list[list[int]], weights: list[float], order: int, begins: bool) -> Counted:
    """What came after each context, context as a tuple with the latest item first."""
    found: Counted = defaultdict(Counter)
    for items, weight in zip(lists, weights, strict=False):
        for place, item in enumerate(items):
            past = context(items[:place], begins)
            for length in range(min(order, len(past)) + 1):
                if item and weight:
                    found[past[:length]][item] += weight
    return found


def context(history: list[int], begins: bool) -> tuple[object, ...]:
    return (*reversed(history), *(["start"] if begins else []))


def discounting_twin(counts: Counted, discounts: list[float], past: tuple[object, ...]) -> list[float]:
    """The recursion as it is written in the papers."""
    found = [0.0] + [1 / (SIZE - 1)] * (SIZE - 1)
    for length, discount in enumerate(discounts):
        after = counts.get(past[:length], Counter()) if length <= len(past) else Counter()
        total = sum(after.values())
        if total:
            given_up = sum(min(count, discount) for count in after.values()) / total
            found = [max(after[item] - discount, 0) / total + given_up * found[item] for item in range(SIZE)]
    return found


def markov_twin(counts: Counted, order: int, past: tuple[object, ...]) -> list[float]:
    """Its own counts where there are any, the rest shared out as the shorter context says."""
    found = [0.0] * SIZE
    for length in range(min(order, len(past)) + 1):
        after = counts.get(past[:length], Counter())
        if not after:
            continue
        total = sum(after.values())
        others = 1 - sum(found[item] for item in after)
        kinds = len(after) if any(found) and others > 1e-12 else 0
        found = [
            after[item] / (total + kinds)
            if after[item]
            else (kinds / (total + kinds) * found[item] / others if kinds else 0.0)
            for item in range(SIZE)
        ]
    return found


@settings(max_examples=60)
@given(LISTS, WEIGHTS, HISTORIES)
def test_discounting_is_that_of_dictionaries(
    lists: list[list[int]], weights: list[float], histories: list[list[int]]
) -> None:
    found = Discounting.fit(trace_set(lists, weights[: len(lists)]), SIZE)
    counts = counted(lists, weights, 4, begins=True)
    expected = [discounting_twin(counts, found.discounts.tolist(), context(past, True)) for past in histories]
    rows = found.probabilities(prefixes_of(*histories))
    assert rows == pytest.approx(np.array(expected), abs=1e-9)
    assert rows.sum(axis=1) == pytest.approx(1)


@settings(max_examples=60)
@given(LISTS, WEIGHTS, HISTORIES, st.integers(1, 2))
def test_markov_is_that_of_dictionaries(
    lists: list[list[int]], weights: list[float], histories: list[list[int]], order: int
) -> None:
    found = Markov.fit(trace_set(lists, weights[: len(lists)]), SIZE, order)
    counts = counted(lists, weights, order, begins=False)
    expected = [markov_twin(counts, order, context(past, False)) for past in histories]
    rows = found.probabilities(prefixes_of(*histories))
    assert rows == pytest.approx(np.array(expected), abs=1e-9)
    assert rows.sum(axis=1) == pytest.approx(1 if counts else 0)


@given(LISTS, WEIGHTS, st.lists(st.sampled_from([0.0, 1.0]), min_size=6, max_size=6))
def test_popularity_and_success_are_those_of_dictionaries(
    lists: list[list[int]], weights: list[float], outcomes: list[float]
) -> None:
    traces = trace_set(lists, weights[: len(lists)], outcomes[: len(lists)])
    calls: Counter[int] = Counter()
    good: Counter[int] = Counter()
    held: Counter[int] = Counter()
    for items, weight, outcome in zip(lists, weights, outcomes, strict=False):
        for item in items:
            calls[item] += weight if item else 0
        for item in set(items):
            held[item] += weight
            good[item] += weight * outcome
    shares = [calls[item] / (sum(calls.values()) or 1) for item in range(SIZE)]
    assert Popularity.fit(traces, SIZE).shares == pytest.approx(shares)
    weight = sum(weights[: len(lists)])
    mean = (
        sum(w * o for w, o in zip(weights[: len(lists)], outcomes, strict=False)) / weight if weight else 0.5
    )
    rates = [(good[item] + PRIOR_TRACES * mean) / (held[item] + PRIOR_TRACES) for item in range(SIZE)]
    assert SuccessPrior.fit(traces, SIZE).rates == pytest.approx(rates, abs=1e-6)


def test_what_goes_well_is_named_before_what_is_called_as_often() -> None:
    found = SuccessPrior.fit(trace_set([[1], [2]] * 5, outcomes=[0.0, 1.0] * 5), SIZE)
    assert found.shares[2] > found.shares[1] > 0
    assert found.shares.sum() == pytest.approx(1)


def test_a_longer_context_decides_and_a_new_one_backs_off() -> None:
    traces = trace_set([[1, 2, 3]] * 3 + [[4, 2, 1]] * 2)
    found = Markov.fit(traces, SIZE, 2).probabilities(prefixes_of([1, 2], [4, 2], [3, 2]))
    assert found.argmax(axis=1).tolist() == [3, 1, 3]


def test_the_first_item_is_learned_from_the_start() -> None:
    found = Discounting.fit(trace_set([[3, 1, 1, 1, 1]] * 4), SIZE).probabilities(prefixes_of([]))
    assert found.argmax() == 3


TRACES = trace_set([[1, 2, 3], [1, 2, 4], [2, 0, 3]], outcomes=[1, 0, 1])
FITTED = (
    Popularity.fit(TRACES, SIZE),
    SuccessPrior.fit(TRACES, SIZE),
    Markov.fit(TRACES, SIZE, 2),
    Discounting.fit(TRACES, SIZE),
)


@pytest.mark.parametrize("fitted", FITTED, ids=lambda each: type(each).__name__)
def test_the_arrays_of_a_file_give_the_same_answers(fitted: Learned) -> None:
    file, asked = io.BytesIO(), prefixes_of([], [1, 2], [0], [2, 0])
    np.savez(file, **fitted.to_arrays())
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        again = type(fitted).from_arrays(dict(arrays))  # type: ignore[attr-defined]
    assert again.size == fitted.size == SIZE
    assert again.probabilities(asked).tolist() == fitted.probabilities(asked).tolist()


@pytest.mark.parametrize("fitted", FITTED, ids=lambda each: type(each).__name__)
def test_arrays_that_are_not_whole_are_refused(fitted: Learned) -> None:
    with pytest.raises(ValueError, match="train it again"):
        type(fitted).from_arrays({})  # type: ignore[attr-defined]


def test_nothing_to_learn_from_names_nothing_or_all_alike() -> None:
    nothing: TraceSet = trace_set([[]])
    asked = prefixes_of([1], [])
    assert Popularity.fit(nothing, SIZE).probabilities(asked).sum() == 0
    assert SuccessPrior.fit(nothing, SIZE).probabilities(asked).sum() == 0
    assert Markov.fit(nothing, SIZE, 2).probabilities(asked).sum() == 0
    assert Discounting.fit(nothing, SIZE).probabilities(asked)[:, 1:] == pytest.approx(0.25)


def test_counts_know_their_order() -> None:
    counts = Markov.fit(TRACES, SIZE, 2).counts
    assert counts.order == 2
    assert ContextCounts.from_arrays(counts.to_arrays()).order == 2
