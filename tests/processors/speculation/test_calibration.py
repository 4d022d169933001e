"""Predictors of different calibration: which settle, how soon, and why the others cannot."""

from __future__ import annotations

import pytest

from pml.processors.speculation.adaptation import HIGHEST, LOWEST, WINDOW
from pml.processors.speculation.calibration import (
    OUTCOMES,
    PREDICTORS,
    SETTLED_WITHIN,
    SWING_MAX,
    Predictor,
    simulate,
    simulate_one,
)

BY_NAME = {predictor.name: predictor for predictor in PREDICTORS}


def names(*, settle: bool) -> list[str]:
    return [predictor.name for predictor in PREDICTORS if predictor.settles is settle]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", names(settle=True))
def test_what_can_settle_does_so_in_time_and_does_not_swing(name: str, seed: int) -> None:
    found = simulate_one(BY_NAME[name], seed)
    assert found.settled_after is not None
    assert found.settled_after <= SETTLED_WITHIN
    assert found.swing <= SWING_MAX
    after = [window for window in found.windows if window.outcomes >= found.settled_after]
    assert sum(window.wanted for window in after) / len(after) >= 0.9
    assert "settles within" in found.verdict


@pytest.mark.parametrize(
    ("name", "bound", "says"),
    [
        ("far_over_confident", HIGHEST, "even at 0.95, only"),
        ("random", HIGHEST, "even at 0.95, only"),
        ("far_under_confident", LOWEST, "even at 0.70"),
    ],
)
def test_what_cannot_settle_ends_at_a_bound_and_says_why(name: str, bound: float, says: str) -> None:
    for seed in range(4):
        found = simulate_one(BY_NAME[name], seed)
        assert not found.settled
        assert found.windows[-1].threshold == bound
        assert says in found.verdict


def test_a_certain_predictor_has_nothing_to_settle() -> None:
    found = simulate_one(BY_NAME["certain"], 1)
    assert (found.windows, found.settled, found.as_expected) == ((), False, True)
    assert "no outcome counts" in found.verdict


def test_the_same_seed_gives_the_same_answer_and_another_one_another() -> None:
    first, again, other = simulate(3, 2_000), simulate(3, 2_000), simulate(4, 2_000)
    assert [item.windows for item in first] == [item.windows for item in again]
    assert first[0].windows != other[0].windows
    assert [item.as_dict() for item in first] == [item.as_dict() for item in again]


def test_a_threshold_that_is_thrown_about_is_told() -> None:
    """A predictor whose truth turns with its own confidence is never at rest."""
    turning = Predictor("turning", "", lambda c: (c < 0.86).astype(float), settles=True)
    found = simulate_one(turning, 1, OUTCOMES)
    assert not found.as_expected


def test_a_simulation_that_is_cut_short_says_so() -> None:
    found = simulate_one(BY_NAME["well_calibrated"], 1, 4 * WINDOW)
    assert found.verdict == "did not settle within 200 outcomes"
