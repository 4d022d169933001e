"""Some of many, each as likely as any other: what a training looks at where there is more than it may cost.

One after each step of the same length would not do: where that is the length of sessions, or the number of
their calls' parameters, it takes the same place of each, and what is learned knows of no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from pml.processors.learning.grouping import Places

Seed = int | Sequence[int]

# Whoever is told no seed draws with this one: always the same of the same.
SAME: Final = 0


def sampled(count: int, most: int, seed: Seed) -> Places:
    """int64, ascending: `most` of the numbers below `count`; all of them where there are no more."""
    if count <= most:
        return np.arange(count)
    return np.sort(_generator(count, seed).permutation(count)[:most])


def sampled_of_each(lengths: Places, most: int, seed: Seed) -> Places:
    """int64, ascending: places in spans, one after another: `most` of each, and all of shorter ones.

    Args:
        lengths: int64 [spans].
        most: of each span.
        seed: of what is drawn.
    """
    count = int(lengths.sum())
    if lengths.max(initial=0) <= most:
        return np.arange(count)
    owners = np.repeat(np.arange(len(lengths)), lengths)
    order = np.lexsort((_generator(count, seed).random(count), owners))
    ranks = np.arange(count) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.sort(order[ranks < most])


def _generator(count: int, seed: Seed) -> np.random.Generator:
    """With the count in its seed it draws nothing that folds, drawn with the same seed, have drawn too."""
    return np.random.default_rng([*np.atleast_1d(seed).tolist(), count])
