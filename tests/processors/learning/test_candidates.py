"""The best are named first, and never what is not known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.learning.candidates import best_first, candidates, fitting
from pml.processors.learning.popularity import Popularity
from tests.processors.learning.small_traces import prefixes_of

# Few values, so that many are equal.
ROWS = st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.5]), min_size=1, max_size=12)


@given(ROWS, st.integers(1, 6))
def test_the_largest_come_first_and_of_equal_ones_the_smaller_number(row: list[float], most: int) -> None:
    found = candidates(Popularity(np.array(row)), prefixes_of([1], []), most)
    order = sorted((-value, number) for number, value in enumerate(row) if value > 0)[:most]
    missing = most - len(order)
    for items, values in zip(found.items.tolist(), found.probabilities.tolist(), strict=True):
        assert items == [number for _, number in order] + [0] * missing
        assert values == [-value for value, _ in order] + [0.0] * missing


def test_many_prefixes_are_taken_in_parts() -> None:
    found = candidates(Popularity(np.array([0, 0.25, 0.75])), prefixes_of(*[[1]] * 600), 1)
    assert found.items.tolist() == [[2]] * 600
    with pytest.raises(ValueError, match="at least one"):
        candidates(Popularity(np.zeros(1)), prefixes_of([1]), 0)


def test_compiled_and_plain_are_the_same() -> None:
    rows = np.random.default_rng(1).random((5, 40))
    one, other = np.zeros((2, 5, 7)), np.zeros((2, 5, 7), dtype=np.int32)
    best_first(rows, other[0], one[0])
    best_first.py_func(rows, other[1], one[1])  # type: ignore[attr-defined]
    assert one[0].tolist() == one[1].tolist()
    assert other[0].tolist() == other[1].tolist()


def test_an_array_that_does_not_fit_is_told() -> None:
    arrays = {"shares": np.zeros(3)}
    assert fitting(arrays, "shares", np.float64, 1) is arrays["shares"]
    for name, dtype, dimensions in (("gone", float, 1), ("shares", np.int64, 1), ("shares", float, 2)):
        with pytest.raises(ValueError, match="train it again"):
            fitting(arrays, name, dtype, dimensions)
