"""The moving average against a plain twin, and what must hold whatever comes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.speculation.adaptation import (
    HIGHEST,
    LOWEST,
    STEP_MAX,
    TARGET,
    WINDOW,
    Change,
    Learning,
    adjusted,
    learn,
)

RATES = st.lists(st.integers(0, WINDOW), max_size=40)


def played(outcomes: list[bool], learning: Learning | None = None) -> tuple[Learning, list[Change]]:
    learning, changes = learning or Learning(), []
    for success in outcomes:
        learning, change = learn(learning, success)
        if change is not None:
            changes.append(change)
    return learning, changes


def window(successes: int) -> list[bool]:
    return [True] * successes + [False] * (WINDOW - successes)


def twin(outcomes: list[bool]) -> tuple[float, float]:
    """The specification's words, one after the other, over all outcomes at once."""
    threshold, average = 0.92, 0.85
    for first in range(0, len(outcomes) - len(outcomes) % 50, 50):
        success_rate = sum(outcomes[first : first + 50]) / 50
        average = 0.2 * success_rate + 0.8 * average
        error = average - 0.85
        if average > 0.90:
            threshold -= min(0.05, 0.3 * abs(error))
        elif average < 0.80:
            threshold += min(0.05, 0.3 * abs(error))
        elif abs(error) > 0.03:
            threshold -= 0.1 * error
        threshold = min(0.95, max(0.70, threshold))
    return threshold, average


@given(st.lists(st.booleans(), max_size=1_200), st.integers(0, 100))
def test_it_is_what_the_specification_says(outcomes: list[bool], more: int) -> None:
    outcomes = outcomes + [True] * (50 * (more % 12))
    learning, _ = played(outcomes)
    threshold, average = twin(outcomes)
    assert learning.value == pytest.approx(threshold, abs=1e-12)
    assert learning.ema == pytest.approx(average, abs=1e-12)
    assert learning.outcomes == len(outcomes)


@given(RATES)
def test_bounds_and_steps_hold(rates: list[int]) -> None:
    learning, changes = played([outcome for rate in rates for outcome in window(rate)])
    assert all(LOWEST <= change.value <= HIGHEST for change in changes)
    assert all(abs(change.value - change.previous) <= STEP_MAX for change in changes)
    assert all(0 <= change.ema <= 1 for change in changes)
    assert all(before.value == after.previous for before, after in pairwise(changes))
    assert learning.windows == len(changes) == len(rates)


@given(st.lists(st.booleans(), max_size=WINDOW - 1))
def test_nothing_changes_before_a_full_window(outcomes: list[bool]) -> None:
    learning, changes = played(outcomes)
    assert (learning.value, learning.ema, learning.state, changes) == (0.92, TARGET, "cold", [])


@given(st.lists(st.booleans(), min_size=WINDOW, max_size=WINDOW))
def test_within_a_window_the_order_says_nothing(outcomes: list[bool]) -> None:
    assert played(outcomes) == played(sorted(outcomes))


@given(st.lists(st.booleans(), max_size=300), st.integers(0, 300))
def test_learning_goes_on_from_what_was_kept(outcomes: list[bool], cut: int) -> None:
    whole, changes = played(outcomes)
    first, early = played(outcomes[:cut])
    again, late = played(outcomes[cut:], first)
    assert (again, early + late) == (whole, changes)


@pytest.mark.parametrize(
    ("ema", "value", "reason"),
    [
        (1.0, 0.90 - 0.045, "too_cautious"),
        (0.901, 0.90 - 0.3 * 0.051, "too_cautious"),
        (0.90, 0.90 - 0.005, "tuned"),
        (0.87, 0.90, "kept"),
        (0.85, 0.90, "kept"),
        (0.80, 0.90 + 0.005, "tuned"),
        (0.79, 0.90 + 0.018, "too_bold"),
        (0.0, 0.95, "too_bold"),
    ],
)
def test_the_step_is_the_formulas(ema: float, value: float, reason: str) -> None:
    found, why = adjusted(0.90, ema)
    assert (found, why) == (pytest.approx(value), reason)


def test_no_window_moves_the_threshold_by_more_than_a_twentieth() -> None:
    """By the formula's share alone it would be a quarter."""
    assert adjusted(0.72, 0.0)[0] == pytest.approx(0.77)


@pytest.mark.parametrize(("ema", "state"), [(0.80, "converged"), (0.90, "converged"), (0.7999, "drifting")])
def test_the_bounds_of_the_range_wanted_are_in_it(ema: float, state: str) -> None:
    assert Learning(ema=ema, windows=1).state == state


def test_converged_is_a_success_rate_in_the_range_wanted() -> None:
    states = []
    learning = Learning()
    for rate in (50, 50, 50, 40, 40, 0):
        learning, _ = played(window(rate), learning)
        states.append((round(learning.ema, 3), learning.state))
    assert states == [
        (0.88, "converged"),
        (0.904, "drifting"),
        (0.923, "drifting"),
        (0.899, "converged"),
        (0.879, "converged"),
        (0.703, "drifting"),
    ]
