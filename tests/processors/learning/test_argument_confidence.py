"""How sure a set of arguments is: of few calls by a line, of many by trees; better values speak for it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pml.processors.learning.argument_combining import LEAST_SHARE
from pml.processors.learning.argument_confidence import LEAD_MOST, TREES_CALLS_LEAST, Confidence, said_of

SHARES = st.lists(st.lists(st.floats(0, 1), max_size=4), max_size=5)


@settings(max_examples=50, derandomize=True, deadline=None)
@given(shares=SHARES)
def test_what_is_said_of_calls_is_what_one_after_another_says(shares: list[list[float]]) -> None:
    best = np.array([share for each in shares for share in each])
    calls = np.array([call for call, each in enumerate(shares) for _ in each], dtype=np.int64)
    said = said_of(best, 2 * best, calls, len(shares))
    for row, each in zip(said, shares, strict=True):
        logs = [math.log(max(share, LEAST_SHARE)) for share in each]
        twin = [sum(logs), min(logs, default=0.0), math.log1p(len(each)), float(not each)]
        twin.append(min([2 * share for share in each], default=LEAD_MOST))
        assert row == pytest.approx(twin)


def of_shares(shares: list[float], count: int | None = None) -> NDArray[np.float64]:
    """What is said of calls with one parameter each."""
    best = np.array(shares)
    return said_of(best, best, np.arange(len(shares)), count or len(shares))


def calls(count: int) -> tuple[NDArray[np.float64], list[str], NDArray[np.bool_]]:
    """Calls of one parameter each, the likelier the more often right; those of `bad` never are."""
    best = np.random.default_rng(5).uniform(0.05, 1, count)
    tools = ["bad" if place % 4 == 0 else "good" for place in range(count)]
    right = np.array([tool == "good" and share > 0.5 for tool, share in zip(tools, best, strict=True)])
    return said_of(best, best, np.arange(count), count), tools, right


@pytest.mark.parametrize("count", [TREES_CALLS_LEAST // 2, 4 * TREES_CALLS_LEAST])
def test_values_and_tools_that_were_right_are_trusted(count: int) -> None:
    said, tools, right = calls(count)
    known = Confidence.fit(said, tools, right, np.arange(count) % 5)
    assert (known.trees is not None) == (count >= TREES_CALLS_LEAST)
    good, poor = of_shares([0.95, 0.1])
    assert known(good, "good") > 0.8
    assert known(poor, "good") < 0.3
    assert known(good, "bad") < 0.5
    assert 0 <= known(good, "unheard") <= known(good, "good") <= (count + 1) / (count + 2)


def test_better_values_never_speak_against_a_call() -> None:
    said, tools, right = calls(400)
    noise = np.random.default_rng(6).random(400) < 0.2
    known = Confidence.fit(said, tools, right ^ noise, np.arange(400) % 5)
    told = [known(of_shares([share])[0], "good") for share in np.linspace(0, 1, 50)]
    assert told == sorted(told)


@pytest.mark.parametrize("count", [0, 3, 60, 400])
def test_arrays_keep_everything(count: int) -> None:
    said, tools, right = calls(count)
    known = Confidence.fit(said, tools, right, np.arange(count) % 5)
    again = Confidence.from_arrays(known.to_arrays(), known.tools)
    for tool in ("good", "bad", "unheard"):
        for row in of_shares([0.9, 0.2], 3):
            assert again(row, tool) == known(row, tool)


def test_arrays_of_another_shape_are_refused() -> None:
    arrays = Confidence.fit(*calls(60), np.arange(60) % 5).to_arrays()
    with pytest.raises(ValueError, match="train it again"):
        Confidence.from_arrays(arrays | {"weights": np.zeros(2)}, {})
