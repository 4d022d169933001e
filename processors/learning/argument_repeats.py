"""How much less likely a value is for a parameter, once another one of the same call has it.

Values are weighed for each parameter by itself, but a number of the text is seldom meant twice, while a habit
often is. How often two parameters of a call were given the same value is counted, and how often they would
be, were they independent of each other; the ratio is a factor for such a pair (one round of proportional
fitting, Deming & Stephan 1940). It is never above 1: what is usually given twice, the rates know already.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.argument_choice import Values
from pml.processors.learning.argument_context import FAMILIES
from pml.processors.learning.candidates import fitting
from pml.processors.learning.grouping import Places, summed

# Of a value that several kinds of sources name the first; what is left out is no value, and has none.
KINDS: Final = ("habit", "text", "argument", "result")
_HABITS: Final = ("default", "constant", "enum")
# Pairs that are counted beside those that were seen, on both sides: few pairs say little.
PRIOR: Final = 1.0

Column = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Repeats:
    """`factors` float64 [KINDS + 1]: log of the factor of each kind, at most 0; the last one is 0."""

    factors: Column

    @classmethod
    def fit(cls, found: Values, said: Column, calls: Places) -> Repeats:
        """Count pairs.

        Args:
            found: values; equal ones of a call have equal numbers, whatever parameter they are of.
            said: float64 [values], their shares, by what did not see their cases.
            calls: int64 [values], the call of each.
        """
        _, of = np.unique(np.column_stack((calls, found.numbers)), axis=0, return_inverse=True)
        of = of.reshape(-1)
        count = int(of.max(initial=-1)) + 1
        kinds = np.full(count, len(KINDS))
        np.minimum.at(kinds, of, kinds_of(found))
        given, expected = _pairs(found.right.astype(np.float64), of, count), _pairs(said, of, count)
        many = len(KINDS) + 1
        ratio = (summed(given, kinds, many) + PRIOR) / (summed(expected, kinds, many) + PRIOR)
        factors = np.minimum(np.log(ratio), 0.0)
        factors[len(KINDS)] = 0.0
        return cls(factors)

    def of(self, found: Values) -> dict[int, float]:
        """By number of the values of one call the log of the factor, where it is below 0."""
        kinds: dict[int, int] = {}
        for number, kind in zip(found.numbers.tolist(), kinds_of(found).tolist(), strict=True):
            kinds[number] = min(kind, kinds.get(number, len(KINDS)))
        factors = self.factors.tolist()
        return {number: factors[kind] for number, kind in kinds.items() if factors[kind] < 0}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """`repeats`, the factors."""
        return {"repeats": self.factors}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Repeats:
        """What `to_arrays` wrote.

        Raises:
            ValueError: the array is missing or does not fit: train the model again.
        """
        factors = fitting(arrays, "repeats", np.float64, 1)
        if len(factors) != len(KINDS) + 1 or not (factors <= 0).all():
            raise ValueError("the model's factors of repeated values are none: train it again")
        return cls(factors)


def kinds_of(found: Values) -> NDArray[np.int64]:
    """int64 [values]: the place of each in `KINDS`, their number for what is left out."""
    named = found.contexts[:, : len(FAMILIES)] > 0
    kinds = np.full(len(named), len(KINDS))
    for place, kind in reversed(list(enumerate(KINDS))):
        families = _HABITS if kind == "habit" else (kind,)
        kinds[named[:, [FAMILIES.index(each) for each in families]].any(axis=1)] = place
    return kinds


def _pairs(weights: Column, of: Places, count: int) -> Column:
    """float64 [count]: the sum over all pairs in a group of the product of their weights."""
    return np.asarray((summed(weights, of, count) ** 2 - summed(weights**2, of, count)) / 2)
