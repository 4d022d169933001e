"""Counts of what decisions came to."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pml.processors.speculation.branches import (
    OTHER_OUTCOMES,
    OUTCOMES_MAX,
    TELL_FROM,
    BranchCounts,
    branch_key,
    branch_parts,
    branch_probability,
    count_outcome,
)


def told(branch: BranchCounts) -> BranchCounts:
    return BranchCounts(branch.counts, branch.counts)


@given(st.lists(st.sampled_from(["true", "false", "case:x", "error"]), max_size=300))
def test_what_was_told_is_never_off_by_more_than_a_hundredth(outcomes: list[str]) -> None:
    branch, records = BranchCounts(), 0
    for outcome in outcomes:
        branch = count_outcome(branch, outcome)
        if branch.stale:
            branch, records = told(branch), records + 1
        for name in ("true", "false", "case:x", "error"):
            off = branch_probability(branch.counts, name) - branch_probability(branch.told, name)
            assert abs(off) < TELL_FROM or name not in branch.counts
    assert branch.counts == Counter(outcomes)


def test_a_steady_decision_is_told_less_and_less_often() -> None:
    branch, records = BranchCounts(), []
    for number in range(10_000):
        branch = count_outcome(branch, "true" if number % 4 else "false")
        if branch.stale:
            branch = told(branch)
            records.append(number)
    assert records[0] == 0
    assert len(records) < 100
    assert sum(number >= 1_000 for number in records) <= 2


def test_outcomes_beyond_the_limit_share_one() -> None:
    branch = BranchCounts()
    for number in range(OUTCOMES_MAX + 20):
        branch = count_outcome(branch, f"case:{number}")
    branch = count_outcome(branch, "case:0")
    assert len(branch.counts) == OUTCOMES_MAX + 1
    assert branch.counts[OTHER_OUTCOMES] == 20
    assert branch.counts["case:0"] == 2


def test_a_key_holds_any_name_and_reads_back() -> None:
    assert branch_key("local", "a/b c", "d/1") == "local/a%2Fb%20c/d%2F1"
    assert branch_parts("local/a%2Fb%20c/d%2F1") == ("local", "a/b c", "d/1")


def test_a_change_of_just_a_hundredth_is_told() -> None:
    assert BranchCounts({"x": 1, "y": 97}, {"x": 0, "y": 97, "z": 1}).stale, "0.02 now, 0.01 told"
    assert not BranchCounts({"x": 1, "y": 98}, {"x": 0, "y": 98, "z": 1}).stale
