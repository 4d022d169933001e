"""Draws in proportion to values that change, beside a scan from the first item on."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.processors.learning.sum_tree import SumTree

# Sums of whole numbers are exact in any order, so the scan's answer is the one right answer.
whole = st.lists(st.integers(0, 9), min_size=1, max_size=20)
updates = st.lists(st.tuples(st.integers(0, 19), st.integers(0, 9)), max_size=20)


def scanned(values: list[int], prefix: float) -> int:
    for item, end in enumerate(accumulate(values)):
        if prefix < end:
            return item
    return max(item for item, value in enumerate(values) if value)


@settings(max_examples=60)
@given(whole, updates, st.lists(st.floats(0, 1.2), min_size=1, max_size=8))
def test_what_is_found_after_updates_is_what_a_scan_finds(
    values: list[int], changes: list[tuple[int, int]], shares: list[float]
) -> None:
    tree = SumTree(values)
    inside = [(item, value) for item, value in changes if item < len(values)]
    tree.update([item for item, _ in inside], [value for _, value in inside])
    for item, value in inside:
        values[item] = value
    assert tree.values.tolist() == values
    assert tree.total == sum(values)
    if sum(values):
        prefixes = [share * sum(values) for share in shares]
        assert tree.find(prefixes).tolist() == [scanned(values, prefix) for prefix in prefixes]


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_a_tree_after_many_updates_is_one_that_is_built_anew_bit_for_bit(seed: int, size: int) -> None:
    draws = np.random.default_rng(seed)
    tree = SumTree(draws.random(size))
    for _ in range(5):
        tree.update(draws.integers(0, size, 50), draws.random(50) ** 9)
    assert np.array_equal(tree._sums, SumTree(tree.values)._sums)


def test_what_has_nothing_is_never_found_whatever_is_rounded() -> None:
    values = np.zeros(9)
    values[[2, 5]] = 0.1, 0.3
    tree = SumTree(values)
    beyond = [0.0, tree.total, np.nextafter(tree.total, 0), 1e300]
    assert tree.find(beyond).tolist() == [2, 5, 5, 5]


def test_stretches_give_each_item_its_share() -> None:
    tree = SumTree([1.0, 2.0, 0.0, 5.0])
    counts = np.bincount(tree.stratified(np.full(8, 0.5)), minlength=4)
    assert counts.tolist() == [1, 2, 0, 5]


@pytest.mark.parametrize("values", [[], [-1.0], [np.nan], [np.inf]])
def test_what_is_no_row_of_values_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match=r"values are|holds 1 to"):
        SumTree(values)


@pytest.mark.parametrize(("items", "values"), [([3], [1.0]), ([-1], [1.0]), ([0, 1], [1.0]), ([0], [-1.0])])
def test_a_wrong_update_is_refused_and_changes_nothing(items: list[int], values: list[float]) -> None:
    tree = SumTree([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"is needed|are numbered|values are"):
        tree.update(items, values)
    assert tree.values.tolist() == [1.0, 2.0, 3.0]


def test_nothing_is_found_where_all_is_zero() -> None:
    with pytest.raises(ValueError, match=r"every value is 0"):
        SumTree([0.0, 0.0]).find([0.0])
