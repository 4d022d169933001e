"""What a step costs."""

from __future__ import annotations

from math import log

import pytest

from pml.processors.learning.hyperedge_weights import hyperedge_weights


def test_a_weight_is_the_logarithm_of_the_smoothed_rate_and_of_what_is_covered() -> None:
    found = hyperedge_weights([0, 8, 8], [0, 8, 8], [1, 1, 0.5])
    assert found == pytest.approx([log(2), log(10 / 9), log(10 / 9) + log(2)])


def test_what_goes_well_more_often_or_is_covered_more_costs_less() -> None:
    found = hyperedge_weights([9, 5, 5, 5], [10, 10, 10, 10], [1, 1, 0.5, 0.0])
    assert (found[:-1] < found[1:]).all()
    assert found[-1] < float("inf")


@pytest.mark.parametrize(
    ("successes", "attempts", "coverage"),
    [
        ([2], [1], [1]),
        ([-1], [1], [1]),
        ([1], [1], [1.5]),
        ([1], [1], [-0.1]),
        ([1], [1, 2], [1]),
        ([0], [float("inf")], [1]),
    ],
)
def test_what_cannot_be_is_refused(
    successes: list[float], attempts: list[float], coverage: list[float]
) -> None:
    with pytest.raises(ValueError, match=r"is needed|lie between|lies in"):
        hyperedge_weights(successes, attempts, coverage)
