"""Intervals know what belongs together and what is paired."""

from __future__ import annotations

import numpy as np
import pytest

from pml.processors.learning import intervals
from pml.processors.learning.intervals import interval, paired_interval, resampled_means


def test_an_interval_is_wider_where_cases_come_in_groups() -> None:
    values = np.repeat(np.random.default_rng(1).normal(size=20), 10)
    alone = interval(resampled_means(values, np.arange(200), 1))
    grouped = interval(resampled_means(values, np.repeat(np.arange(20), 10), 1))
    assert grouped[0] < alone[0] < values.mean() < alone[1] < grouped[1]


def test_means_are_those_of_drawing_cluster_by_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    values, clusters = np.array([1.0, 2.0, 4.0, 8.0]), np.array([7, 7, 3, 5])
    drawn = np.random.default_rng(1).integers(3, size=(50, 3))
    of = [[4.0], [8.0], [1.0, 2.0]]
    expected = [np.mean([value for name in row for value in of[name]]) for row in drawn]
    assert resampled_means(values, clusters, 1, 50) == pytest.approx(expected)
    monkeypatch.setattr(intervals, "_DRAWN_AT_ONCE", 10)
    assert resampled_means(values, clusters, 1, 50) == pytest.approx(expected)


def test_a_paired_interval_is_narrower_than_what_is_compared() -> None:
    generator = np.random.default_rng(1)
    other = generator.normal(size=200)
    one = other + 0.1 + 0.01 * generator.normal(size=200)
    low, high = paired_interval(one, other, np.arange(200), 1)
    assert 0.09 < low < 0.1 < high < 0.11
    assert paired_interval(one, one, np.arange(200), 1) == (0, 0)


def test_intervals_that_hold_together_leave_out_less() -> None:
    means = np.arange(1_001) / 1_000
    assert interval(means) == pytest.approx((0.025, 0.975))
    assert interval(means, together=5) == pytest.approx((0.005, 0.995))


def test_nothing_and_unlike_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="nothing to resample"):
        resampled_means(np.zeros(0), np.zeros(0, dtype=np.int64), 1)
    with pytest.raises(ValueError, match="cannot be paired"):
        paired_interval(np.zeros(1), np.zeros(2), np.zeros(1, dtype=np.int64), 1)
