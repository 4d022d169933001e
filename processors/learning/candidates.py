"""What may come next, the best first, and how a predictor's probabilities become that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.compiled import compiled
from pml.processors.learning.traces import Prefixes
from pml.processors.learning.vocabulary import UNKNOWN, Ids

Probabilities = NDArray[np.float64]

# What `prediction.made` keeps (DESIGN §7).
CANDIDATES_MOST = 20
# Rows at once, and their values: components hold some twenty such arrays at a time.
_ROWS_MOST, _VALUES_MOST = 256, 2**20


class Predictor(Protocol):
    """What says how likely each item is to come next."""

    @property
    def size(self) -> int:
        """That of its vocabulary."""

    def probabilities(self, prefixes: Prefixes) -> Probabilities:
        """float64 [prefixes, size]: of each item, that it is next; that of `UNKNOWN` is 0, sums are ≤ 1."""


class Learned(Predictor, Protocol):
    """A predictor that keeps nothing but arrays; the same arrays give the same answer."""

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All that it knows, for an npz without pickle; its class has `from_arrays`."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """`items` int32 and `probabilities` float64, both [prefixes, places], the best first.

    Of equal ones the smaller id is first. Where nothing is left to name, `UNKNOWN` stands with 0.
    """

    items: Ids
    probabilities: Probabilities


def candidates(predictor: Predictor, prefixes: Prefixes, most: int = CANDIDATES_MOST) -> Candidates:
    """The best of a predictor for each prefix.

    Raises:
        ValueError: `most` is less than 1.
    """
    if most < 1:
        raise ValueError("at least one candidate must be asked for")
    items = np.full((len(prefixes), most), UNKNOWN, dtype=np.int32)
    found = np.zeros((len(prefixes), most))
    for start, end in parts(len(prefixes), predictor.size):
        rows = predictor.probabilities(prefixes.part(start, end))
        best_first(rows, items[start:end], found[start:end])
    return Candidates(items, found)


def parts(rows: int, columns: int) -> Iterator[tuple[int, int]]:
    """The beginning and the end of parts of so many rows; of many columns there are fewer in each."""
    at_once = max(1, min(_ROWS_MOST, _VALUES_MOST // max(1, columns)))
    for start in range(0, rows, at_once):
        yield start, min(start + at_once, rows)


@compiled
def best_first(rows: Probabilities, items: Ids, found: Probabilities) -> None:
    """Write the largest positive values of each row and their columns, of equal ones the first column.

    Args:
        rows: float64 [n, columns].
        items: int32 [n, places], written; left as it is where no positive value is left.
        found: float64 [n, places], written likewise.
    """
    places = items.shape[1]
    for row in range(rows.shape[0]):
        held = 0
        for column in range(rows.shape[1]):
            value = rows[row, column]
            if value <= 0 or (held == places and value <= found[row, places - 1]):
                continue
            place = held if held < places else places - 1
            while place > 0 and found[row, place - 1] < value:
                items[row, place] = items[row, place - 1]
                found[row, place] = found[row, place - 1]
                place -= 1
            items[row, place] = column
            found[row, place] = value
            held = min(held + 1, places)


def fitting(arrays: Mapping[str, NDArray[Any]], name: str, dtype: type, dimensions: int) -> NDArray[Any]:
    """One of a predictor's arrays, as it must be.

    Raises:
        ValueError: it is missing, or of another type or shape: train the model again.
    """
    found = arrays.get(name)
    if found is None or found.dtype != np.dtype(dtype) or found.ndim != dimensions:
        raise ValueError(f"the model has no fitting array {name}: train it again")
    return found
