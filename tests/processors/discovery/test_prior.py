"""The prior pushes, and never by more than it may."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.discovery.prior import PRIOR_MOST, Standing, prior

anything = st.floats(allow_nan=True, allow_infinity=True)


@given(st.builds(Standing, anything, anything, anything))
def test_it_is_bounded_whatever_it_is_given(standing: Standing) -> None:
    assert 0 <= prior(standing) <= PRIOR_MOST


def test_what_is_not_known_does_not_push() -> None:
    assert prior(None) == prior(Standing()) == 0
    assert prior(Standing(1, 1, 1)) == pytest.approx(PRIOR_MOST)


@pytest.mark.parametrize("better", [Standing(success=0.9), Standing(recency=0.9), Standing(page_rank=0.9)])
def test_each_part_counts(better: Standing) -> None:
    assert prior(better) > 0
