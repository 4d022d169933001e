"""How wrong a prediction was: the temporal-difference error of one step (Epic 11)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def td_errors(outcomes: ArrayLike, predicted: ArrayLike) -> NDArray[np.float64]:
    """Outcome − predicted, of each trace. A run ends with its outcome: no later value is discounted into it.

    Args:
        outcomes: [traces], what came of each: 1 success, 0 failure, or a score in [0, 1].
        predicted: [traces], the probability of success that the model gave; NaN where it gave none.

    Returns:
        float64 [traces], in [−1, 1]; NaN where nothing was predicted.

    Raises:
        ValueError: lengths differ, or a value is outside of [0, 1].
    """
    ended, expected = np.asarray(outcomes, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    if ended.shape != expected.shape or ended.ndim != 1:
        raise ValueError(f"one prediction an outcome is needed, not {expected.shape} for {ended.shape}")
    if not np.all((ended >= 0) & (ended <= 1)):
        raise ValueError("an outcome lies in [0, 1]")
    if not np.all(np.isnan(expected) | ((expected >= 0) & (expected <= 1))):
        raise ValueError("a prediction lies in [0, 1], or is NaN where there is none")
    return ended - expected
