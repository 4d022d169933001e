"""Recall, NDCG and intervals, by hand."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest

from benchmarks.discovery.baselines import fused, tf_idf
from benchmarks.discovery.measures import quality, ranked


def test_recall_and_ndcg_of_a_ranking() -> None:
    found = quality([[5, 1, 2, 3, 4, 9]], [frozenset({1, 9, 77})])
    assert found.recall[1][0] == 0
    assert found.recall[5][0] == pytest.approx(1 / 3)
    assert found.recall[10][0] == pytest.approx(2 / 3)
    best = 1 + 1 / log2(3) + 1 / log2(4)
    assert found.ndcg[0] == pytest.approx((1 / log2(3) + 1 / log2(7)) / best)


def test_nothing_is_better_than_all_that_is_right_first() -> None:
    found = quality([list(range(10)), [3, 2]], [frozenset(range(20)), frozenset({2, 3})])
    assert found.ndcg == pytest.approx([1, 1])


def test_equal_scores_rank_by_number() -> None:
    assert ranked(np.array([[0, 1, 1, 0.5]], dtype=np.float32)) == [[1, 2, 3, 0]]


def test_tf_idf_prefers_the_rare_word_and_fusing_weighs_both_alike() -> None:
    lexical = tf_idf(["mail report", "mail letter", "mail chart"], ["mail chart"])
    assert lexical[0].argmax() == 2
    other = np.array([[1000.0, 0, 0]], dtype=np.float32)
    both = fused(lexical, other)
    assert both[0, 1] < min(both[0, 0], both[0, 2])
