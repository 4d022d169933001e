"""A curve shows whether confidences are true, and isotonic regression makes them so."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.learning.isotonic import Isotonic, pooled
from pml.processors.learning.reliability import brier, reliability


def test_a_curve_by_hand() -> None:
    confidences = np.array([0.05, 0.15, 0.1, 1.0])
    found = reliability(confidences, np.array([False, True, False, True]))
    assert found.counts.tolist() == [1, 2, 1]
    assert found.confidences == pytest.approx([0.05, 0.125, 1])
    assert found.rates == pytest.approx([0, 0.5, 1])
    assert found.expected_error == pytest.approx((0.05 + 2 * 0.375) / 4)
    assert brier(np.array([0.2, 1.0]), np.array([True, True])) == pytest.approx(0.32)


def test_a_confidence_out_of_range_and_a_missing_truth_are_refused() -> None:
    for confidence in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="within 0 and 1"):
            brier(np.array([confidence]), np.array([True]))
    with pytest.raises(ValueError, match="1 confidences for 2"):
        reliability(np.zeros(1), np.zeros(2, dtype=bool))
    with pytest.raises(ValueError, match="at least one bin"):
        reliability(np.zeros(1), np.zeros(1, dtype=bool), bins=0)
    nothing = np.zeros(0), np.zeros(0, dtype=bool)
    assert (brier(*nothing), reliability(*nothing).expected_error) == (0, 0)


def isotonic_twin(rates: list[float], sizes: list[float]) -> list[float]:
    """The max-min formula: for each place the largest over starts of the smallest over ends of the mean."""
    count = len(rates)

    def mean(start: int, end: int) -> float:
        weights = sizes[start : end + 1]
        return sum(r * w for r, w in zip(rates[start : end + 1], weights, strict=True)) / sum(weights)

    return [
        max(min(mean(start, end) for end in range(place, count)) for start in range(place + 1))
        for place in range(count)
    ]


@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.sampled_from([1.0, 2.0])), min_size=1, max_size=9
    )
)
def test_pools_are_those_of_the_max_min_formula(pairs: list[tuple[float, float]]) -> None:
    rates, sizes = (list(column) for column in zip(*pairs, strict=True))
    of = pooled(np.array(rates), np.array(sizes))
    weights = np.bincount(of, sizes)
    means = np.bincount(of, np.multiply(rates, sizes)) / weights
    assert means[of] == pytest.approx(isotonic_twin(rates, sizes))
    assert of.tolist() == pooled.py_func(np.array(rates), np.array(sizes)).tolist()  # type: ignore[attr-defined]


def drawn(seed: int, count: int = 4_000) -> tuple[np.ndarray, np.ndarray]:
    """Scores that are right less often than they say."""
    generator = np.random.default_rng(seed)
    scores = generator.random(count)
    return scores, generator.random(count) < scores**3


def test_calibrated_confidences_are_how_often_it_is_right() -> None:
    calibrator = Isotonic.fit(*drawn(1))
    scores, right = drawn(2)
    confidences = calibrator(scores)
    assert reliability(confidences, right).expected_error < 0.05
    assert reliability(scores, right).expected_error > 0.15
    assert brier(confidences, right) < brier(scores, right)


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.4, 0.9]), st.booleans()), min_size=1, max_size=20))
def test_a_higher_score_is_never_worth_less_and_few_cases_give_no_certainty(
    cases: list[tuple[float, bool]],
) -> None:
    scores, right = (np.array(column) for column in zip(*cases, strict=True))
    found = Isotonic.fit(scores, right)(np.linspace(-1, 2, 50))
    assert np.all(np.diff(found) >= -1e-12)
    if 0 < right.sum() < len(right):
        assert found.min() > 0
        assert found.max() < 1


def test_weights_are_cases_and_arrays_give_the_same_curve() -> None:
    scores, right = np.array([0.1, 0.5, 0.9]), np.array([False, True, True])
    one = Isotonic.fit(scores, right, np.array([1.0, 2.0, 1.0]))
    other = Isotonic.fit(np.array([0.1, 0.5, 0.5, 0.9]), np.array([False, True, True, True]))
    asked = np.linspace(0, 1, 9)
    assert one(asked) == pytest.approx(other(asked))
    assert Isotonic.from_arrays(one.to_arrays())(asked).tolist() == one(asked).tolist()


def test_nothing_to_learn_from_is_told() -> None:
    with pytest.raises(ValueError, match="learns from scores"):
        Isotonic.fit(np.zeros(0), np.zeros(0, dtype=bool))
    with pytest.raises(ValueError, match="finite"):
        Isotonic.fit(np.array([np.inf]), np.array([True]))
    with pytest.raises(ValueError, match="train it again"):
        Isotonic.from_arrays({})
