"""A value that one parameter of a call has is less likely for another: counted, and heeded when choosing."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pml.processors.learning.argument_choice import FEATURES, Values
from pml.processors.learning.argument_context import FAMILIES, NAMES
from pml.processors.learning.argument_picks import NAMEABLE, leads, picked
from pml.processors.learning.argument_repeats import KINDS, PRIOR, Repeats
from pml.processors.learning.argument_sources import ArgumentSources
from pml.processors.learning.scene import Past

few = settings(max_examples=60, derandomize=True, deadline=None)
# A value of a case: its number in the call, its family, its share, and whether it was given.
Row = tuple[int, str, float, bool]
CASE = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(FAMILIES), st.floats(0.001, 0.9), st.booleans()),
    max_size=4,
    unique_by=lambda row: row[0],
)
CALLS = st.lists(st.lists(CASE, max_size=3), max_size=4)


def columns(calls: list[list[list[Row]]]) -> tuple[Values, NDArray[np.float64], NDArray[np.int64]]:
    """Values, their shares and the call of each."""
    cases = [(number, case) for number, call in enumerate(calls) for case in call]
    rows = [(owner, number, row) for owner, (number, case) in enumerate(cases) for row in case]
    contexts = np.zeros((len(rows), len(NAMES)), dtype=np.float32)
    for place, (_, _, row) in enumerate(rows):
        contexts[place, FAMILIES.index(row[1])] = 1
    found = Values(
        np.array([owner for owner, _, _ in rows], dtype=np.int64),
        np.array([row[0] for _, _, row in rows], dtype=np.int32),
        np.zeros((len(rows), FEATURES)),
        np.array([row[3] for _, _, row in rows], dtype=np.bool_),
        contexts,
    )
    calls_of = np.array([number for _, number, _ in rows], dtype=np.int64)
    return found, np.array([row[2] for _, _, row in rows], dtype=np.float64), calls_of


def kind_of(number: int, call: list[list[Row]]) -> int:
    """Of the values of a call with this number, the first kind of any of them."""
    named = {row[1] for case in call for row in case if row[0] == number}
    kinds = ["habit" if each in ("default", "constant", "enum") else each for each in named]
    return min(KINDS.index(each) if each in KINDS else len(KINDS) for each in kinds)


@few
@given(CALLS)
def test_pairs_are_counted_as_one_after_another_says(calls: list[list[list[Row]]]) -> None:
    given_twice, expected = np.zeros((2, len(KINDS) + 1))
    for call in calls:
        for one, other in combinations(call, 2):
            for left, right in product(one, other):
                if left[0] == right[0]:
                    kind = kind_of(left[0], call)
                    given_twice[kind] += left[3] and right[3]
                    expected[kind] += left[2] * right[2]
    twin = [
        min(0.0, math.log((seen + PRIOR) / (alone + PRIOR)))
        for seen, alone in zip(given_twice, expected, strict=True)
    ]
    assert Repeats.fit(*columns(calls)).factors == pytest.approx([*twin[:-1], 0.0])


@few
@given(CALLS, st.lists(st.floats(-3, 0), min_size=len(KINDS), max_size=len(KINDS)))
def test_each_call_is_given_its_likeliest_values_all_together(
    calls: list[list[list[Row]]], factors: list[float]
) -> None:
    found, said, calls_of = columns(calls)
    rows = picked(found, said, calls_of, Repeats(np.array([*factors, 0.0])))
    assert found.owners[rows].tolist() == sorted(set(found.owners.tolist()))
    for number, call in enumerate(calls):
        own = [row for row in rows.tolist() if calls_of[row] == number]
        chosen = [(int(found.numbers[row]), float(said[row])) for row in own]
        options = [_nameable(case) for case in call if case]
        best = max(_score(each, call, factors) for each in product(*options))
        assert _score(chosen, call, factors) == pytest.approx(best)


def _nameable(case: list[Row]) -> list[tuple[int, float]]:
    falling = sorted(((row[0], row[2]) for row in case), key=lambda value: -value[1])
    return [value for value in falling if value[1] >= NAMEABLE] or falling[:1]


def _score(chosen: object, call: list[list[Row]], factors: list[float]) -> float:
    values = list(chosen)  # type: ignore[call-overload]
    twice = [one for (one, _), (other, _) in combinations(values, 2) if one == other]
    kinds = [kind_of(one, call) for one in twice]
    less = sum(factors[kind] for kind in kinds if kind < len(KINDS))
    return float(sum(math.log(share) for _, share in values) + less)


def test_the_lead_is_over_the_next_value_that_can_be_named() -> None:
    case: list[Row] = [(0, "text", 0.6, True), (1, "text", 0.3, False), (2, "text", 0.01, False)]
    found, said, _ = columns([[case, case[:1], [case[0], case[2]]]])
    told = leads(found, said, np.array([0, 3, 4]))
    assert told == pytest.approx([math.log(2), math.log(600), math.log(600)])
    assert leads(found, said, np.array([1]))[0] == pytest.approx(-math.log(2))


def booked(number: int) -> tuple[list[Past], list[str]]:
    """The first number of a text is what a note is about; a booking has both."""
    low, high = 100 + number, 500 + number
    told = (low, high) if number % 2 else (high, low)
    book = Past("shop:book", {"income": told[number % 3 == 0], "costs": told[number % 3 != 0]}, {})
    text = f"take {told[0]} euros and {told[1]} euros"
    return [Past("shop:note", {"about": told[0]}, {}), Past("shop:open", {}, {}), book], [text, "", text]


def declared(*names: str) -> dict[str, object]:
    return {"properties": {name: {"type": "integer"} for name in names}, "required": list(names)}


KNOWN = {
    "shop:note": declared("about"),
    "shop:book": declared("income", "costs"),
    "shop:swap": declared("mine", "yours"),
}


def test_what_the_text_says_once_is_not_given_twice() -> None:
    """Of a tool that nobody called each parameter may be the first number, for all that is known."""
    past, texts = zip(*map(booked, range(40)), strict=True)
    sources = ArgumentSources.fit(past, texts, KNOWN)
    assert sources.repeats.factors[KINDS.index("text")] < -1
    apart = replace(sources, repeats=Repeats(np.zeros(len(KINDS) + 1)))
    text = "take 71 euros and 9 euros"
    (twice,), (once,) = (
        each.guesses("shop:swap", [Past("shop:open", {}, {})], text, 1) for each in (apart, sources)
    )
    assert twice.arguments["mine"] == twice.arguments["yours"]
    assert sorted(once.arguments.values()) == [9, 71]


def test_a_model_without_factors_is_trained_again() -> None:
    past, texts = zip(*map(booked, range(10)), strict=True)
    arrays = ArgumentSources.fit(past, texts, KNOWN).to_arrays()
    for factors in (np.zeros(2), np.ones(len(KINDS) + 1)):
        with pytest.raises(ValueError, match="train it again"):
            ArgumentSources.from_arrays(arrays | {"repeats": factors})
    with pytest.raises(ValueError, match="train"):
        ArgumentSources.from_arrays({name: each for name, each in arrays.items() if name != "repeats"})
