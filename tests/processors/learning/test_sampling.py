"""Of many some are drawn, each as likely as any other; of few all are kept."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.learning.sampling import sampled, sampled_of_each

COUNTS, SEEDS = st.integers(0, 300), st.integers(0, 9)


@given(COUNTS, COUNTS, SEEDS)
def test_of_few_all_are_kept_and_of_many_so_many(count: int, most: int, seed: int) -> None:
    found = sampled(count, most, seed)
    assert found.dtype == np.int64
    assert len(found) == min(count, most)
    assert found.tolist() == sorted({*found.tolist()} & {*range(count)})
    assert found.tolist() == sampled(count, most, seed).tolist()


@given(st.integers(2, 5), SEEDS)
def test_what_comes_in_turns_keeps_its_shares(length: int, seed: int) -> None:
    """Also where the number of those that are kept divides that of all by the length of a turn."""
    places = sampled(2_000 * length, 2_000, seed) % length
    shares = np.bincount(places, minlength=length) / 2_000
    assert np.all(np.abs(shares - 1 / length) < 6 * np.sqrt(1 / length / 2_000))


def test_other_seeds_and_counts_draw_others() -> None:
    drawn = [sampled(count, 50, seed).tolist() for count, seed in ((100, 1), (100, 2), (100, [1, 2]))]
    assert len({*map(tuple, drawn)}) == 3
    folded = np.sort(np.random.default_rng(1).permutation(100)[:50])
    assert drawn[0] != folded.tolist(), "what folds draw with the same seed is something else"


@given(st.lists(st.integers(0, 9), max_size=8), st.integers(1, 9), SEEDS)
def test_of_each_span_so_many_are_kept(lengths: list[int], most: int, seed: int) -> None:
    found = sampled_of_each(np.array(lengths, dtype=np.int64), most, [seed, 1])
    assert found.tolist() == sorted({*found.tolist()} & {*range(sum(lengths))})
    owners = np.repeat(np.arange(len(lengths)), lengths)[found]
    assert np.bincount(owners, minlength=len(lengths)).tolist() == [min(each, most) for each in lengths]
