"""Products of points do not depend on how many are asked for at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng

from pml.processors.learning.dot_products import dot_products, dot_products_at


@given(st.integers(0, 9), st.integers(0, 9), st.integers(1, 300), st.integers(0, 99))
def test_products_are_those_of_one_pair_to_the_last_bit(
    rows: int, count: int, dimensions: int, seed: int
) -> None:
    draw = default_rng(seed)
    points = draw.standard_normal((rows, dimensions)).astype(np.float32)
    others = draw.standard_normal((count, dimensions)).astype(np.float32)
    found = dot_products(points, others)
    assert found == pytest.approx(points.astype(np.float64) @ others.T.astype(np.float64), abs=1e-9)
    for row in range(rows):
        for other in range(count):
            assert dot_products(points[[row]], others[[other]])[0, 0] == found[row, other]


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 4), st.integers(0, 99))
def test_products_that_prefixes_name_are_those_of_all(
    prefixes: int, places: int, candidates: int, seed: int
) -> None:
    draw = default_rng(seed)
    points, others = (draw.standard_normal((count, 33)).astype(np.float32) for count in (5, 7))
    rows = draw.integers(0, 5, (prefixes, places))
    items = draw.integers(0, 7, (prefixes, candidates)).astype(np.int32)
    found = dot_products_at(points, rows, others, items)
    everything = dot_products(points, others)
    assert np.array_equal(found, everything[rows[:, :, None], items[:, None, :]])


def test_columns_laid_out_otherwise_are_taken_as_they_are() -> None:
    points = np.asfortranarray(default_rng(1).standard_normal((5, 8)).astype(np.float32))
    assert np.array_equal(dot_products(points[::2], points), dot_products(points.copy("C"), points)[::2])
