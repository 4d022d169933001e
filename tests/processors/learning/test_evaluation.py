"""Hits, ranks and squared errors, by hand and by a loop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.learning.candidates import Candidates
from pml.processors.learning.evaluation import quality
from pml.processors.learning.vocabulary import UNKNOWN


def named(*rows: list[tuple[int, float]]) -> Candidates:
    return Candidates(
        np.array([[item for item, _ in row] for row in rows], dtype=np.int32),
        np.array([[share for _, share in row] for row in rows]),
    )


def test_a_ranking_by_hand() -> None:
    found = quality(named([(3, 0.6), (1, 0.4)], [(3, 0.6), (1, 0.4)]), np.array([1, 2], dtype=np.int32))
    assert found.hit_1.tolist() == [0, 0]
    assert found.hit_3.tolist() == [1, 0]
    assert found.reciprocal_rank.tolist() == [0.5, 0]
    assert found.brier == pytest.approx([0.6**2 + 0.6**2, 0.6**2 + 0.4**2 + 1])
    assert found.means()["mrr"] == 0.25


def test_what_is_unknown_is_a_miss_even_where_nothing_is_named() -> None:
    found = quality(named([(UNKNOWN, 0.0), (UNKNOWN, 0.0)]), np.array([UNKNOWN], dtype=np.int32))
    assert found.means() == {"hit_1": 0, "hit_3": 0, "mrr": 0, "brier": 1}


@given(st.permutations([1, 2, 3, 4, 5]), st.integers(0, 6))
def test_ranks_are_those_of_a_loop(items: list[int], target: int) -> None:
    shares = [0.4, 0.2, 0.2, 0.1, 0.0]
    found = quality(named(list(zip(items, shares, strict=True))), np.array([target], dtype=np.int32))
    rank = items.index(target) + 1 if target in items else None
    assert found.reciprocal_rank[0] == (1 / rank if rank else 0)
    assert found.hit_3[0] == (rank is not None and rank <= 3)
    errors = [(share - (item == target)) ** 2 for item, share in zip(items, shares, strict=True)]
    assert found.brier[0] == pytest.approx(sum(errors) + (rank is None))


def test_nothing_asked_is_nothing_hit_and_lengths_must_agree() -> None:
    nothing = Candidates(np.zeros((0, 2), dtype=np.int32), np.zeros((0, 2)))
    assert quality(nothing, np.zeros(0, dtype=np.int32)).means()["hit_1"] == 0
    with pytest.raises(ValueError, match="1 targets for 0"):
        quality(nothing, np.zeros(1, dtype=np.int32))
