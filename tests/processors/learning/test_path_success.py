"""What is expected of a run's path, by the runs that are no near-duplicates of it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.learning.path_success import (
    PRIOR_RUNS,
    path_ids,
    path_success,
    run_priorities,
)

RUNS = st.lists(
    st.tuples(st.lists(st.integers(0, 3), max_size=4), st.booleans(), st.integers(0, 8)), max_size=25
)


@given(st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=25))
def test_runs_have_one_path_where_they_called_the_same_in_the_same_order(runs: list[list[int]]) -> None:
    tools = np.array([tool for run in runs for tool in run], dtype=np.int32)
    found = path_ids(tools, np.cumsum([0, *map(len, runs)])).tolist()
    for one, run in zip(found, runs, strict=True):
        assert [other == one for other in found] == [other == run for other in runs]


@given(RUNS)
def test_what_is_expected_is_counted_of_all_other_groups(runs: list[tuple[list[int], bool, int]]) -> None:
    names = sorted({tuple(path) for path, _, _ in runs})
    paths = np.array([names.index(tuple(path)) for path, _, _ in runs], dtype=np.int64)
    outcomes = np.array([float(good) for _, good, _ in runs])
    groups = np.array([group for _, _, group in runs], dtype=np.int64)
    found = path_success(paths, outcomes, groups)
    for run, said in enumerate(found.tolist()):
        others = groups != groups[run]
        same = others & (paths == paths[run])
        if not same.any():
            assert np.isnan(said)
            continue
        usual = outcomes[others].mean()
        wanted = (outcomes[same].sum() + PRIOR_RUNS * usual) / (same.sum() + PRIOR_RUNS)
        np.testing.assert_allclose(said, wanted, atol=1e-12)


def test_a_path_that_two_unlike_runs_took_is_never_new() -> None:
    found = run_priorities(np.arange(100) // 2, np.ones(100), np.arange(100))
    assert found.max() < 0.1


def test_the_unusual_has_more_to_teach_and_a_path_of_its_own_most() -> None:
    paths = np.array([0] * 20 + [1], dtype=np.int64)
    outcomes = np.array([1.0] * 19 + [0.0, 1.0])
    found = run_priorities(paths, outcomes, np.arange(21))
    assert found[20] == 1.0
    assert (found[19] > 0.9, found[:19].max() < 0.2) == (True, True)


def test_where_all_runs_are_near_duplicates_nothing_is_known() -> None:
    zeros = np.zeros(3, dtype=np.int64)
    assert run_priorities(zeros, np.ones(3), zeros).tolist() == [0.5] * 3
    assert run_priorities(zeros[:0], np.ones(0), zeros[:0]).tolist() == []
