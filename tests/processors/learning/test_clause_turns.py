"""Each call takes the free clause that fits it, the expected one before others."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pml.processors.learning.clause_turns import FITS_LEAST, NONE, OUT_OF_TURN, turns


def turns_twin(fits: list[list[float]], calls: int) -> tuple[list[bool], int]:
    free, last = [True] * len(fits), NONE
    for call in reversed(range(calls)):
        told = [
            (fits[at][call] - OUT_OF_TURN * abs(at - last - 1), -at) for at in range(len(fits)) if free[at]
        ]
        best = max(told, default=(0.0, 0))
        if best[0] > FITS_LEAST:
            last = -best[1]
            free[last] = False
    return free, last


@settings(max_examples=60)
@given(arrays(np.float64, (2, 4, 3), elements=st.sampled_from([0.0, 0.4, 0.6, 1.0])), st.data())
def test_turns_are_those_taken_one_by_one(fits: np.ndarray, data: st.DataObject) -> None:
    counts = np.array([[data.draw(st.integers(0, 4)), data.draw(st.integers(0, 3))] for _ in fits])
    free, last = turns(fits, counts)
    for row, (clauses, calls) in enumerate(counts.tolist()):
        expected, at = turns_twin(fits[row, :clauses].tolist(), calls)
        assert free[row].tolist() == expected + [False] * (4 - clauses)
        assert last[row] == at


def test_of_two_that_fit_alike_the_expected_one_is_taken() -> None:
    # The first call, behind, fits clauses 1 and 2 alike and is expected at 0: clause 1 is nearer.
    fits = np.array([[[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]])
    free, last = turns(fits, np.array([[3, 2]]))
    assert free[0].tolist() == [False, False, True]
    assert last.tolist() == [0]
