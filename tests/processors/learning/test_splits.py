"""Near-duplicates lie on one side, whatever the split."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.learning.splits import LEFT_OUT, TEST, TRAINING, by_time, folds, leaks

GROUPS = st.lists(st.integers(-3, 8), max_size=30).map(lambda found: np.array(found, dtype=np.int64))


@given(GROUPS, st.integers(2, 5), st.integers(0, 3))
def test_folds_do_not_leak_and_differ_by_the_largest_group_at_most(
    groups: np.ndarray, count: int, seed: int
) -> None:
    found = folds(groups, count, seed)
    assert leaks(groups, found).tolist() == []
    assert found.tolist() == folds(groups, count, seed).tolist()
    sizes = np.bincount(found, minlength=count)
    largest = max(np.unique(groups, return_counts=True)[1], default=0)
    assert sizes.max() - sizes.min() <= largest


def test_another_seed_is_another_split() -> None:
    groups = np.arange(50)
    assert folds(groups, 5, 1).tolist() != folds(groups, 5, 2).tolist()
    with pytest.raises(ValueError, match="fewer than two"):
        folds(groups, 1, 1)


def twin(groups: list[int], times: list[int], cut: int) -> list[int]:
    """Trace by trace, by the earliest time of its group."""
    sides = []
    for group, time in zip(groups, times, strict=True):
        first = min(t for g, t in zip(groups, times, strict=True) if g == group)
        sides.append(TRAINING if time < cut else TEST if first >= cut else LEFT_OUT)
    return sides


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 50)), min_size=1, max_size=30))
def test_the_test_is_later_than_all_training_and_shares_no_group(pairs: list[tuple[int, int]]) -> None:
    groups, times = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    sides = by_time(groups, times, 0.3)
    assert leaks(groups, sides).tolist() == []
    cut = sorted(times)[min(len(times) - 1, int(np.ceil(len(times) * 0.7)))]
    assert sides.tolist() == twin(groups.tolist(), times.tolist(), cut)


def test_times_need_a_share_and_may_be_none() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    assert by_time(nothing, nothing, 0.5).tolist() == []
    with pytest.raises(ValueError, match="between 0 and 1"):
        by_time(nothing, nothing, 1.0)


def test_a_leak_is_found_and_what_is_left_out_leaks_nothing() -> None:
    groups, sides = np.array([5, 5, 7, 7, 2]), np.array([0, 1, 0, LEFT_OUT, 1])
    assert leaks(groups, sides).tolist() == [5]
