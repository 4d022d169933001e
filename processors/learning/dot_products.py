"""Products of points that are the same to the last bit however many are asked for at once.

What BLAS adds up depends on how many rows it is given, so a feature of one question differs in its last bits
from the same one among many, and a tree whose split lies between them answers otherwise than was judged.
Here each product has its own sum, of as many terms and in the same order everywhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.compiled import compiled, compiled_reordered
from pml.processors.memory.embedding import Vectors

Products = NDArray[np.float64]
Numbers = NDArray[np.integer]


def dot_products(points: Vectors, others: Vectors) -> Products:
    """float64 [rows, others] of float32 [rows, dimensions] and [others, dimensions]."""
    found = np.empty((len(points), len(others)))
    _each_with_each(np.ascontiguousarray(points), np.ascontiguousarray(others), found)
    return found


def dot_products_at(points: Vectors, rows: Numbers, others: Vectors, items: Numbers) -> Products:
    """float64 [prefixes, rows, items]: of the points and the others that each prefix names.

    Args:
        points: float32 [points, dimensions].
        rows: integers [prefixes, rows] into `points`, from 0.
        others: float32 [others, dimensions].
        items: integers [prefixes, items] into `others`, from 0.
    """
    found = np.empty((*rows.shape, items.shape[1]))
    _named(np.ascontiguousarray(points), rows, np.ascontiguousarray(others), items, found)
    return found


@compiled
def _each_with_each(points: Vectors, others: Vectors, found: Products) -> None:
    for other in range(len(others)):
        for row in range(len(points)):
            found[row, other] = _product(points[row], others[other])


@compiled
def _named(points: Vectors, rows: Numbers, others: Vectors, items: Numbers, found: Products) -> None:
    for prefix in range(len(rows)):
        for row in range(rows.shape[1]):
            for item in range(items.shape[1]):
                found[prefix, row, item] = _product(points[rows[prefix, row]], others[items[prefix, item]])


@compiled_reordered
def _product(point: Vectors, other: Vectors) -> float:
    total = 0.0
    for place in range(len(point)):
        total += np.float64(point[place]) * np.float64(other[place])
    return total
