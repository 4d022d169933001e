"""How much there is to learn from a trace: the priority with which it is replayed (DESIGN §7, Epic 11)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Priorities = NDArray[np.float64]

WITHOUT_MODEL = 0.5
UNSEEN_PATH = 1.0
# Not 0: what is predicted well today is still looked at now and then, or nobody sees when that ends.
LEAST, MOST = 0.01, 1.0


def priorities(errors: ArrayLike, seen: ArrayLike, trained: bool) -> Priorities:
    """0.5 while no model exists, 1.0 for a path that the trained one never saw, else |TD error| in [0.01, 1].

    Args:
        errors: [traces], TD errors (`td_errors`); one that is NaN had no prediction and counts as unseen.
        seen: bool [traces], whether the model was trained on a trace with this path.
        trained: whether there is a model.

    Returns:
        float64 [traces], in [0.01, 1].

    Raises:
        ValueError: lengths differ.
    """
    amounts, known = np.abs(np.asarray(errors, dtype=np.float64)), np.asarray(seen, dtype=np.bool_)
    if amounts.shape != known.shape or amounts.ndim != 1:
        raise ValueError(f"one error a path is needed, not {amounts.shape} for {known.shape}")
    if not trained:
        return np.full(len(amounts), WITHOUT_MODEL)
    return np.where(known & ~np.isnan(amounts), np.clip(amounts, LEAST, MOST), UNSEEN_PATH)
