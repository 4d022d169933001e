"""Which traces a learner sees next: the surprising ones more often, or all alike.

After Schaul et al. 2015 (arXiv 1511.05952). Both ways have one interface, so that what training gains by
priorities can be compared with what it gains without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pml.processors.learning.priorities import Priorities
from pml.processors.learning.sum_tree import Items, SumTree

# Of one draw, for one batch: `[seed of the training, number of the step]` gives each step its own.
Seed = int | Sequence[int]

ALPHA = 0.6
BETA_START, BETA_END = 0.4, 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """`items` int64 and `weights` float64 in (0, 1], both [draws]; a weight scales its item's gradient."""

    items: Items
    weights: NDArray[np.float64]


class Replay(Protocol):
    """Draws items 0 … n − 1 with replacement. What it knows changes by `update` alone."""

    def __len__(self) -> int:
        """How many items there are."""

    def sample(self, count: int, seed: Seed, progress: float) -> Batch:
        """Draw `count` items; `progress` in [0, 1] is the share of the training that is done.

        Raises:
            ValueError: fewer than one item is asked for, or a progress outside of [0, 1].
        """

    def update(self, items: ArrayLike, priorities: ArrayLike) -> None:
        """The priorities in (0, 1] of these items from now on; of an item named twice the last counts.

        Raises:
            ValueError: lengths differ, an item does not exist, or a priority is outside of (0, 1].
        """


class PrioritisedReplay:
    """Draws in proportion to priority^α, and weighs against the bias of that by (n · P(i))^−β.

    β goes linearly from 0.4 to 1 with the progress. Weights are divided by the largest of their batch, so
    that they only ever make a step smaller (section 3.4 of the paper).
    """

    def __init__(self, priorities: ArrayLike, alpha: float = ALPHA) -> None:
        """Priorities [items] in (0, 1]; `alpha` 0 draws uniformly, 1 in proportion.

        Raises:
            ValueError: a priority is outside of (0, 1], or alpha is outside of [0, 1].
        """
        if not 0 <= alpha <= 1:
            raise ValueError(f"alpha lies in [0, 1], not at {alpha}")
        self._alpha = alpha
        self._priorities = _checked(priorities).copy()
        self._tree = SumTree(self._priorities**alpha)

    def __len__(self) -> int:
        return len(self._tree)

    @property
    def priorities(self) -> Priorities:
        """float64 [items], a copy: what goes back to the traces."""
        return self._priorities.copy()

    def sample(self, count: int, seed: Seed, progress: float) -> Batch:
        """As `Replay.sample`; stratified: one draw from each of `count` equal stretches of the sum."""
        _check_draw(count, progress)
        items = self._tree.stratified(np.random.default_rng(seed).random(count))
        chances = self._priorities[items] ** self._alpha / self._tree.total
        weights = (len(self) * chances) ** -(BETA_START + (BETA_END - BETA_START) * progress)
        return Batch(items, weights / weights.max())

    def update(self, items: ArrayLike, priorities: ArrayLike) -> None:
        """As `Replay.update`; O(log n) an item."""
        given, places = _checked(priorities), np.asarray(items, dtype=np.int64)
        self._tree.update(places, given**self._alpha)
        self._priorities[places] = given


class UniformReplay:
    """Draws every item alike, with weights of 1; priorities are checked and make no difference."""

    def __init__(self, size: int) -> None:
        """Raises ValueError for fewer than one item."""
        if size < 1:
            raise ValueError("there must be an item to draw")
        self._size = size

    def __len__(self) -> int:
        return self._size

    def sample(self, count: int, seed: Seed, progress: float) -> Batch:
        """As `Replay.sample`."""
        _check_draw(count, progress)
        return Batch(np.random.default_rng(seed).integers(0, self._size, count), np.ones(count))

    def update(self, items: ArrayLike, priorities: ArrayLike) -> None:
        """As `Replay.update`: nothing is kept, and wrong arguments are refused all the same."""
        given, places = _checked(priorities), np.asarray(items, dtype=np.int64)
        if places.shape != given.shape or not np.all((places >= 0) & (places < self._size)):
            raise ValueError(f"one priority for each of some items 0 to {self._size - 1} is needed")


def _check_draw(count: int, progress: float) -> None:
    if count < 1:
        raise ValueError("at least one item must be drawn")
    if not 0 <= progress <= 1:
        raise ValueError(f"progress lies in [0, 1], not at {progress}")


def _checked(priorities: ArrayLike) -> Priorities:
    given = np.asarray(priorities, dtype=np.float64)
    if given.ndim != 1 or not np.all((given > 0) & (given <= 1)):
        raise ValueError("priorities are one row of numbers in (0, 1]")
    return given
