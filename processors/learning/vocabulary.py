"""Names of tools and capabilities as small numbers, the same in training and in serving."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.packed_texts import packed, unpacked

Ids = NDArray[np.int32]

# Whatever the vocabulary does not have. It may stand in a history, it is never a candidate.
UNKNOWN = 0


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Tool ids (`server:name`) and capability ids (`cap_…`) in a fixed order; the first has the number 1.

    Raises:
        ValueError: a name comes twice.
    """

    names: tuple[str, ...]
    _ids: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ids = {name: number for number, name in enumerate(self.names, start=UNKNOWN + 1)}
        if len(ids) != len(self.names):
            raise ValueError("a name comes twice in a vocabulary")
        object.__setattr__(self, "_ids", ids)

    @classmethod
    def of(cls, names: Iterable[str]) -> Vocabulary:
        """The names in ascending order, each once: the same names always have the same numbers."""
        return cls(tuple(sorted(set(names))))

    def extended(self, names: Iterable[str]) -> Vocabulary:
        """With what is new behind what is known, ascending: no number changes its meaning."""
        return Vocabulary(self.names + tuple(sorted(set(names) - self._ids.keys())))

    @property
    def size(self) -> int:
        """Numbers in use, with that of the unknown: every id is below it."""
        return len(self.names) + 1

    def ids(self, names: Sequence[str]) -> Ids:
        """int32, one for each name; `UNKNOWN` for those it does not have."""
        return np.fromiter((self._ids.get(name, UNKNOWN) for name in names), np.int32, len(names))

    def name(self, number: int) -> str | None:
        """The name of a number; None of `UNKNOWN`.

        Raises:
            IndexError: it has no such number.
        """
        if not UNKNOWN <= number < self.size:
            raise IndexError(f"a vocabulary of {self.size} has no number {number}")
        return None if number == UNKNOWN else self.names[number - 1]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """`name_bytes` (uint8, UTF-8, one after another) and `name_offsets` (int64, names + 1)."""
        return packed("name", self.names)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Vocabulary:
        """The vocabulary that `to_arrays` wrote.

        Raises:
            KeyError: an array is missing.
            ValueError: the bytes are no UTF-8, or a name comes twice.
        """
        return cls(unpacked("name", arrays))
