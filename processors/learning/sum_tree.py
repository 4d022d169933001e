"""Draws in proportion to values that change: a tree of sums in one array (Schaul et al. 2015, B.2.1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pml.processors.learning.compiled import compiled

Sums = NDArray[np.float64]
Items = NDArray[np.int64]

# A tree takes 16 bytes an item, up to twice that: 1 GiB at most.
ITEMS_MOST = 1 << 25


class SumTree:
    """Values of items 0 … n − 1, their sum, and which item a prefix of that sum ends in.

    A changed value sets every sum above it anew from its two parts, never by a difference: after any number
    of changes the tree is the same, bit for bit, as one that is built of the same values. So nothing drifts
    and nothing has to be rebuilt.
    """

    def __init__(self, values: ArrayLike) -> None:
        """All sums, once: O(n).

        Raises:
            ValueError: no values or more than `ITEMS_MOST`, or one that is negative or not finite.
        """
        given = _checked(values)
        if not 1 <= len(given) <= ITEMS_MOST:
            raise ValueError(f"a sum tree holds 1 to {ITEMS_MOST} items, not {len(given)}")
        self._size = len(given)
        self._leaves = 1 << (self._size - 1).bit_length()
        self._sums: Sums = np.zeros(2 * self._leaves)
        self._sums[self._leaves : self._leaves + self._size] = given
        level = self._leaves
        while level > 1:
            below = self._sums[level : 2 * level]
            self._sums[level // 2 : level] = below[0::2] + below[1::2]
            level //= 2

    def __len__(self) -> int:
        return self._size

    @property
    def total(self) -> float:
        """The sum of all values."""
        return float(self._sums[1])

    @property
    def values(self) -> Sums:
        """float64 [items], a copy."""
        return self._sums[self._leaves : self._leaves + self._size].copy()

    def update(self, items: ArrayLike, values: ArrayLike) -> None:
        """Set many values; of an item named twice the last value counts. O(log n) each.

        Raises:
            ValueError: lengths differ, an item does not exist, a value is negative or not finite.
        """
        places, given = np.asarray(items, dtype=np.int64), _checked(values)
        if places.shape != given.shape:
            raise ValueError(f"one value an item is needed, not {given.shape} for {places.shape}")
        if len(places) and not (places.min() >= 0 and places.max() < self._size):
            raise ValueError(f"items are numbered from 0 to {self._size - 1}")
        _set(self._sums, self._leaves, places, given)

    def find(self, prefixes: ArrayLike) -> Items:
        """int64 [prefixes]: the item i with (sum of values before i) ≤ prefix < (that with i's value).

        An item whose value is 0 is never found; a prefix at or beyond the sum finds the last item above 0.
        O(log n) each.

        Raises:
            ValueError: every value is 0, or a prefix is negative or not finite.
        """
        wanted = _checked(prefixes)
        if self.total <= 0:
            raise ValueError("every value is 0: there is nothing to find")
        return _find(self._sums, self._leaves, wanted)

    def stratified(self, uniform: ArrayLike) -> Items:
        """int64 [draws]: one item from each of as many equal stretches of the sum.

        `uniform` in [0, 1) says where in its stretch each draw falls. Over all stretches an item is found in
        proportion to its value, and the counts vary less than those of independent draws.

        Raises:
            ValueError: as `find`.
        """
        shares = np.asarray(uniform, dtype=np.float64)
        stretch = self.total / max(len(shares), 1)
        return self.find((np.arange(len(shares)) + shares) * stretch)


def _checked(values: ArrayLike) -> Sums:
    given = np.asarray(values, dtype=np.float64)
    if given.ndim != 1 or not np.all(np.isfinite(given) & (given >= 0)):
        raise ValueError("values are one row of finite numbers, none below 0")
    return given


@compiled
def _set(sums: Sums, leaves: int, items: Items, values: Sums) -> None:
    for i in range(len(items)):
        node = leaves + items[i]
        sums[node] = values[i]
        node //= 2
        while node >= 1:
            sums[node] = sums[2 * node] + sums[2 * node + 1]
            node //= 2


@compiled
def _find(sums: Sums, leaves: int, prefixes: Sums) -> Items:
    found = np.empty(len(prefixes), dtype=np.int64)
    for i in range(len(prefixes)):
        left_over = prefixes[i]
        node = 1
        while node < leaves:
            left = sums[2 * node]
            # Rounding may leave more than the right part holds: what has nothing is not entered all the same.
            if left_over < left or sums[2 * node + 1] == 0:
                node = 2 * node
            else:
                left_over -= left
                node = 2 * node + 1
        found[i] = node - leaves
    return found
