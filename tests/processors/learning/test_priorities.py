"""How much there is to learn from a trace."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.learning.priorities import priorities


def plain(error: float, seen: bool, trained: bool) -> float:
    if not trained:
        return 0.5
    if not seen:
        return 1.0
    return min(max(abs(error), 0.01), 1.0)


@given(st.lists(st.tuples(st.floats(-1, 1), st.booleans()), max_size=20), st.booleans())
def test_priorities_are_those_of_the_rule_written_out(
    traces: list[tuple[float, bool]], trained: bool
) -> None:
    found = priorities([error for error, _ in traces], [seen for _, seen in traces], trained)
    assert found.tolist() == [plain(error, seen, trained) for error, seen in traces]


def test_a_seen_path_without_a_prediction_counts_as_unseen() -> None:
    assert priorities([np.nan], [True], trained=True).tolist() == [1.0]


def test_an_error_for_each_path_is_needed() -> None:
    with pytest.raises(ValueError, match="one error a path"):
        priorities([0.5], [True, False], trained=True)
