"""Products of matrices, added to what is there, and their slopes: BLAS, a few rows at a time.

OpenBLAS shares larger products among threads that wait for each other: where others have the cores, one of
0.2 ms takes 20. So few rows at once stay with the thread that asks, and take no longer than all together.
"""

from __future__ import annotations

import numpy as np

from pml.processors.learning.attention.parameters import Floats
from pml.processors.learning.compiled import compiled_reordered

# Multiplications that OpenBLAS leaves to one thread (`interface/gemm.c`: 4 · 65,536).
MULTIPLICATIONS_MOST = 1 << 18
# Terms at once where a vector is multiplied.
_TERMS = 4


@compiled_reordered
def times(vector: Floats, matrix: Floats, found: Floats) -> None:
    """Add vector [n] · matrix [n, m] to `found` [m]: the same to the last bit, whatever else is asked."""
    whole = len(vector) - len(vector) % _TERMS
    for i in range(0, whole, _TERMS):
        a, b, c, d = vector[i], vector[i + 1], vector[i + 2], vector[i + 3]
        one, two, three, four = matrix[i], matrix[i + 1], matrix[i + 2], matrix[i + 3]
        for j in range(len(found)):
            found[j] += a * one[j] + b * two[j] + c * three[j] + d * four[j]
    for i in range(whole, len(vector)):
        factor, row = vector[i], matrix[i]
        for j in range(len(found)):
            found[j] += factor * row[j]


@compiled_reordered
def rows_times(rows: Floats, matrix: Floats, found: Floats) -> None:
    """Add rows [rows, n] · matrix [n, m] to `found` [rows, m]."""
    if matrix.size == 0:
        return
    at_once = max(1, MULTIPLICATIONS_MOST // matrix.size)
    for start in range(0, len(rows), at_once):
        part = np.dot(rows[start : start + at_once], matrix)
        for row in range(len(part)):
            for j in range(part.shape[1]):
                found[start + row, j] += part[row, j]


@compiled_reordered
def matrix_slopes(rows: Floats, slopes: Floats, found: Floats) -> None:
    """Add what slopes [rows, m] of `rows_times` mean for its matrix [n, m] to `found`."""
    if found.size == 0:
        return
    at_once = max(1, MULTIPLICATIONS_MOST // found.size)
    for start in range(0, len(rows), at_once):
        part = np.dot(rows[start : start + at_once].T, slopes[start : start + at_once])
        for i in range(part.shape[0]):
            for j in range(part.shape[1]):
                found[i, j] += part[i, j]


@compiled_reordered
def row_slopes(slopes: Floats, matrix: Floats, found: Floats) -> None:
    """Add what slopes [rows, m] of `rows_times` mean for its rows [rows, n] to `found`."""
    rows_times(slopes, np.ascontiguousarray(matrix.T), found)
