"""Which clauses of a request the calls so far were for, and which is next: each call takes one, in order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.compiled import compiled
from pml.processors.learning.grouping import Places

# What a clause must fit a call at least to be taken by it, and what it loses for each place out of turn.
FITS_LEAST, OUT_OF_TURN = 0.35, 0.15
NONE = -1


def turns(fits: NDArray[np.float64], counts: Places) -> tuple[NDArray[np.bool_], Places]:
    """Let each call take the free clause that fits it best, the expected one before others.

    Args:
        fits: float64 [rows, clauses, calls]: of each clause to each call, the latest call first.
        counts: int64 [rows, 2]: clauses and calls that there are; the others are no part of it.

    Returns:
        bool [rows, clauses]: those that are there and free; int64 [rows]: the last that was taken, or `NONE`.
    """
    free = np.zeros(fits.shape[:2], dtype=np.bool_)
    last = np.full(len(fits), NONE, dtype=np.int64)
    _taken(fits, counts, free, last)
    return free, last


@compiled
def _taken(
    fits: NDArray[np.float64], counts: Places, free: NDArray[np.bool_], last: NDArray[np.int64]
) -> None:
    for row in range(len(fits)):
        clauses, calls = counts[row]
        free[row, :clauses] = True
        for call in range(calls - 1, -1, -1):
            best, most = NONE, FITS_LEAST
            for clause in range(clauses):
                fit = fits[row, clause, call] - OUT_OF_TURN * abs(clause - last[row] - 1)
                if free[row, clause] and fit > most:
                    best, most = clause, fit
            if best != NONE:
                free[row, best] = False
                last[row] = best
