"""The arithmetic of the benchmarks."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.figures import Bound, Figure, arrivals_s, percentile, rate_between

POSITIVE = st.floats(min_value=1e-3, max_value=1e6)


def figure(values: list[float], baseline: list[float], bound: Bound | None = None) -> Figure:
    return Figure("steps", "ms", tuple(values), tuple(baseline), bound)


def test_a_ratio_compares_the_sides_of_one_round() -> None:
    assert figure([10, 30], [5, 10]).ratios == (2, 3)


def test_the_ratio_of_a_figure_is_the_median_of_its_rounds() -> None:
    assert figure([1, 100, 3], [1, 1, 1]).ratio == 3


@given(st.lists(st.tuples(POSITIVE, POSITIVE), min_size=1, max_size=9))
def test_the_ratio_lies_within_those_of_the_rounds(rounds: list[tuple[float, float]]) -> None:
    ours = figure([value for value, _ in rounds], [other for _, other in rounds])
    assert min(ours.ratios) <= ours.ratio <= max(ours.ratios)


def test_sides_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="2 values beside 1 baselines"):
        figure([1, 2], [1])


def test_a_figure_without_rounds_is_refused() -> None:
    with pytest.raises(ValueError, match="0 values"):
        figure([], [])


def test_a_baseline_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="baseline of zero"):
        figure([1.0], [0.0])


@pytest.mark.parametrize(
    ("sense", "ratio", "held"),
    [("at least", 0.5, True), ("at least", 0.49, False), ("at most", 2.0, True), ("at most", 2.01, False)],
)
def test_a_limit_is_held_up_to_itself(sense: str, ratio: float, held: bool) -> None:
    limit = 0.5 if sense == "at least" else 2.0
    assert figure([ratio], [1.0], Bound(sense, limit)).held is held  # type: ignore[arg-type]


def test_a_figure_without_a_bound_is_neither_held_nor_missed() -> None:
    assert figure([1.0], [1.0]).held is None


def test_the_aim_decides_nothing() -> None:
    assert figure([4.0], [1.0], Bound("at least", 3.0, aim=10.0)).held is True


def test_a_figure_says_all_that_it_was_made_of() -> None:
    said = figure([10, 30], [5, 10], Bound("at most", 2.0, 1.0)).as_dict()
    assert (said["ratio"], said["ratio_min"], said["ratio_max"]) == (2.5, 2, 3)
    assert (said["bound"], said["limit"], said["aim"], said["held"]) == ("at most", 2.0, 1.0, False)
    assert (said["values"], said["baseline"]) == ([10, 30], [5, 10])


def test_percentiles_interpolate_between_neighbours() -> None:
    assert percentile([4, 1, 3, 2], 50) == 2.5
    assert percentile(range(101), 99) == 99


@given(st.lists(POSITIVE, min_size=2, max_size=50))
def test_the_middle_percentile_is_the_median(samples: list[float]) -> None:
    assert percentile(samples, 50) == pytest.approx(statistics.median(samples))


def test_there_is_no_percentile_of_nothing() -> None:
    with pytest.raises(ValueError, match="no samples"):
        percentile([], 50)


def test_arrivals_are_the_same_for_the_same_seed_and_ascend() -> None:
    first = arrivals_s(200, 5, seed=7)
    assert first == arrivals_s(200, 5, seed=7) != arrivals_s(200, 5, seed=8)
    assert first == sorted(first)
    assert 0 < first[0] <= first[-1] < 5


@given(st.integers(0, 10_000))
def test_arrivals_come_at_their_rate(seed: int) -> None:
    expected = 50 * 20
    assert abs(len(arrivals_s(50, 20, seed)) - expected) < 6 * expected**0.5


def test_a_rate_leaves_out_what_was_done_before_the_first_look() -> None:
    assert rate_between([(1_000, 400), (1_500, 900), (3_000, 2_400)]) == 1_000


def test_a_rate_needs_two_looks() -> None:
    with pytest.raises(ValueError, match="one step"):
        rate_between([(1_000, 400)])
