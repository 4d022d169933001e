"""How wrong a prediction was."""

from __future__ import annotations

import numpy as np
import pytest

from pml.processors.learning.td_error import td_errors


def test_the_error_is_the_outcome_less_what_was_predicted() -> None:
    assert td_errors([1, 0, 0.5], [0.25, 0.75, 0.5]).tolist() == [0.75, -0.75, 0.0]


def test_what_was_not_predicted_has_no_error() -> None:
    assert np.isnan(td_errors([1.0], [np.nan])).all()


@pytest.mark.parametrize(
    ("outcomes", "predicted"), [([1], [0, 1]), ([2], [0]), ([np.nan], [0]), ([1], [1.5])]
)
def test_what_is_no_outcome_or_probability_is_refused(outcomes: list[float], predicted: list[float]) -> None:
    with pytest.raises(ValueError, match=r"is needed|lies in"):
        td_errors(outcomes, predicted)
