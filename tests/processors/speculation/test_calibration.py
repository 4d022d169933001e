"""Predictors of different calibration: which settle, how soon, and why the others cannot."""

from __future__ import annotations

import numpy as np
import pytest

from pml.processors.speculation.adaptation import HIGHEST, LOWEST, WANTED_FROM, WANTED_TO, WINDOW
from pml.processors.speculation.calibration import (
    OUTCOMES,
    PREDICTORS,
    SETTLED_WINDOWS,
    SETTLED_WITHIN,
    SWING_MAX,
    Predictor,
    Simulated,
    Window,
    judged,
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


def test_what_is_off_by_a_tenth_or_less_settles_and_nothing_else() -> None:
    """What is said of each predictor is what becomes of it."""
    found = simulate(1)
    assert all(item.as_expected for item in found)
    settled = [item.predictor.name for item in found if item.settled]
    assert settled == ["well_calibrated", "over_confident", "under_confident"]


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


STEADY = BY_NAME["well_calibrated"]


def windows(*emas: float, thresholds: tuple[float, ...] = ()) -> tuple[Window, ...]:
    """Windows with these averages."""
    at = thresholds or (0.8,) * len(emas)
    return tuple(
        Window((number + 1) * WINDOW, threshold, ema)
        for number, (ema, threshold) in enumerate(zip(emas, at, strict=True))
    )


@pytest.mark.parametrize(
    ("ema", "wanted"),
    [(WANTED_FROM, True), (WANTED_TO, True), (WANTED_FROM - 1e-9, False), (WANTED_TO + 1e-9, False)],
)
def test_the_wanted_range_has_its_bounds_in_it(ema: float, wanted: bool) -> None:
    assert Window(50, 0.8, ema).wanted is wanted


def test_it_settles_with_the_first_of_twenty_windows_in_a_row() -> None:
    found = judged(STEADY, windows(0.5, *[0.85] * 20))
    assert (found.settled_after, found.verdict) == (2 * WINDOW, "settles within 100 outcomes")
    assert judged(STEADY, windows(0.5, *[0.85] * 19)).settled_after is None
    assert judged(STEADY, windows(*[0.85] * 20)).settled_after == WINDOW


def test_the_swing_is_what_the_threshold_moves_once_it_has_settled() -> None:
    thresholds = (0.1, 0.75, *[0.80] * (SETTLED_WINDOWS - 2), 0.88)
    found = judged(STEADY, windows(0.5, *[0.85] * SETTLED_WINDOWS, thresholds=thresholds))
    assert found.swing == pytest.approx(0.13)
    assert found.settled
    thresholds = (0.6, *[0.8] * (SETTLED_WINDOWS - 1))
    wild = judged(STEADY, windows(*[0.85] * SETTLED_WINDOWS, thresholds=thresholds))
    assert wild.verdict == "settles within 50 outcomes, but swings by 0.20"
    assert not wild.settled
    thresholds = (SWING_MAX, *[0.0] * (SETTLED_WINDOWS - 1))
    still = judged(STEADY, windows(*[0.85] * SETTLED_WINDOWS, thresholds=thresholds))
    assert (still.settled, still.verdict) == (True, "settles within 50 outcomes"), "both say the same"
    assert judged(STEADY, windows(0.5)).swing == 0


@pytest.mark.parametrize(
    ("after", "swing", "settled"),
    [
        (SETTLED_WITHIN, SWING_MAX, True),
        (SETTLED_WITHIN + 1, 0.0, False),
        (100, SWING_MAX + 0.01, False),
        (None, 0.0, False),
    ],
)
def test_settled_is_in_time_and_at_rest(after: int | None, swing: float, settled: bool) -> None:
    found = Simulated(STEADY, (), after, swing, "")
    assert found.settled is settled
    assert found.as_expected is settled


@pytest.mark.parametrize(
    ("ema", "threshold", "verdict"),
    [
        (0.5, HIGHEST, "cannot settle: even at 0.95, only 50% are right"),
        (0.95, LOWEST, "cannot settle: even at 0.70, 95% are right"),
        (WANTED_FROM, HIGHEST, "did not settle within 50 outcomes"),
        (WANTED_TO, LOWEST, "did not settle within 50 outcomes"),
        (0.5, LOWEST, "did not settle within 50 outcomes"),
        (0.95, HIGHEST, "did not settle within 50 outcomes"),
        (0.5, 0.8, "did not settle within 50 outcomes"),
        (0.95, 0.8, "did not settle within 50 outcomes"),
    ],
)
def test_what_did_not_settle_says_which_bound_holds_it(ema: float, threshold: float, verdict: str) -> None:
    assert judged(STEADY, (Window(50, threshold, ema),)).verdict == verdict


def test_the_last_window_is_what_is_told() -> None:
    told = judged(STEADY, windows(0.5, 0.61234567, thresholds=(0.7, 0.81234567))).as_dict()
    assert told == {
        "predictor": "well_calibrated",
        "calibration": "right as often as it says",
        "settles": False,
        "settled_after": None,
        "swing": 0.0,
        "threshold": 0.8123,
        "success_rate": 0.6123,
        "verdict": "did not settle within 100 outcomes",
    }
    none = judged(STEADY, ()).as_dict()
    assert (none["threshold"], none["success_rate"]) == (None, None)
    swinging = Simulated(STEADY, (), 100, 0.123456, "")
    assert swinging.as_dict()["swing"] == 0.1235


def test_predictors_are_as_right_as_they_are_described() -> None:
    said = np.array([0.0, 0.04, 0.5, 0.98, 1.0])
    right = {name: predictor.right(said).round(6).tolist() for name, predictor in BY_NAME.items()}
    assert right == {
        "well_calibrated": [0.0, 0.04, 0.5, 0.98, 1.0],
        "over_confident": [0.0, 0.0, 0.4, 0.88, 0.9],
        "under_confident": [0.05, 0.09, 0.55, 1.0, 1.0],
        "far_over_confident": [0.0, 0.0, 0.2, 0.68, 0.7],
        "far_under_confident": [0.15, 0.19, 0.65, 1.0, 1.0],
        "random": [0.5] * 5,
        "certain": [0.0, 0.04, 0.5, 0.98, 1.0],
    }


def test_a_simulation_ends_with_the_outcome_that_was_asked_for() -> None:
    assert [window.outcomes for window in simulate_one(STEADY, 1, 3 * WINDOW).windows] == [50, 100, 150]
    assert len(simulate_one(STEADY, 1, 3 * WINDOW - 1).windows) == 2
