"""Products are those of NumPy, however many rows there are; the tangent is the hyperbolic one."""

from __future__ import annotations

import numpy as np
import pytest

from pml.processors.learning.attention import products
from pml.processors.learning.attention.passing import tanh
from pml.processors.learning.attention.products import (
    MULTIPLICATIONS_MOST,
    matrix_slopes,
    row_slopes,
    rows_times,
    times,
)

DRAWS = np.random.default_rng(1)
# The second is taken in several parts, the last of which is smaller; then none of one side.
SHAPES = ((3, 5, 2), (MULTIPLICATIONS_MOST // (64 * 48) * 2 + 7, 64, 48), (4, 0, 3), (0, 4, 3))


def drawn(*shape: int) -> np.ndarray:
    return DRAWS.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("shape", SHAPES)
def test_products_and_their_slopes_are_added_to_what_is_there(shape: tuple[int, int, int]) -> None:
    count, middle, width = shape
    rows, matrix, slopes = drawn(count, middle), drawn(middle, width), drawn(count, width)
    for function, given, expected in (
        (rows_times, (rows, matrix), rows.astype(float) @ matrix),
        (matrix_slopes, (rows, slopes), rows.T.astype(float) @ slopes),
        (row_slopes, (slopes, matrix), slopes.astype(float) @ matrix.T),
    ):
        found = np.ones(expected.shape, dtype=np.float32)
        function(*given, found)
        np.testing.assert_allclose(found, 1 + expected, rtol=1e-3, atol=1e-3)


def test_no_product_is_so_large_that_threads_share_it() -> None:
    rows, matrix, asked = drawn(100, 256), drawn(256, 64), []
    found = np.zeros((100, 64), dtype=np.float32)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(products, "np", Watched(asked))
        rows_times.py_func(rows, matrix, found)
        matrix_slopes.py_func(rows, found, np.zeros_like(matrix))
    assert len(asked) == 2 * 7
    assert max(asked) <= MULTIPLICATIONS_MOST


class Watched:
    """NumPy that says how many multiplications each of its products has."""

    def __init__(self, asked: list[int]) -> None:
        self.asked = asked

    def dot(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        self.asked.append(one.shape[0] * one.shape[1] * other.shape[1])
        return one @ other


@pytest.mark.parametrize("length", [1, 4, 10])
def test_a_vector_has_the_same_product_as_its_row(length: int) -> None:
    vector, matrix, found = drawn(length), drawn(length, 6), np.ones(6, dtype=np.float32)
    times(vector, matrix, found)
    np.testing.assert_allclose(found, 1 + vector.astype(float) @ matrix, rtol=1e-4, atol=1e-5)


def test_the_tangent_is_near_everywhere_and_never_beyond_one() -> None:
    values = np.concatenate((np.linspace(-12, 12, 4_001), [-1e30, 1e30, 0])).astype(np.float32)
    found = values.copy()
    tanh(found)
    np.testing.assert_allclose(found, np.tanh(values.astype(float)), atol=1e-6)
    assert np.abs(found).max() <= 1
    assert found[-1] == 0
