"""What counts as the same, and what does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.streams.demo.comparison import Outcome, TaskResult, differences, shape

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
SAME = Outcome("completed", {"n1": TaskResult("completed", {"text": "abc"})}, "digest", {"d1": "true"})


@given(JSON)
def test_equal_outcomes_have_no_differences(value: Any) -> None:
    outcome = Outcome("completed", {"n1": TaskResult("completed", value)}, "w")
    assert differences(outcome, outcome) == []


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (replace(SAME, tasks={"n1": TaskResult("completed", {"text": "abd"})}), "n1: the results differ"),
        (replace(SAME, tasks={"n1": TaskResult("failed", error_code="TIMEOUT")}), "failed (TIMEOUT)"),
        (replace(SAME, tasks={}), "n1 ended in one run only"),
        (replace(SAME, world="other"), "left differently"),
        (replace(SAME, status="failed"), "the run completed without and failed with"),
        (replace(SAME, decisions={"d1": "false"}), "decisions"),
    ],
)
def test_one_difference_is_named(other: Outcome, said: str) -> None:
    found = differences(SAME, other)
    assert len(found) == 1
    assert said in found[0]


def test_a_clock_is_compared_by_the_shape_of_its_answer() -> None:
    def outcome(time: Any) -> Outcome:
        return Outcome("completed", {"now": TaskResult("completed", {"time": time}, volatile=True)}, "w")

    assert differences(outcome("10:00"), outcome("10:01")) == []
    assert differences(outcome("10:00"), outcome(10)) == ["now: the results differ"]


def test_a_shape_keeps_names_and_types() -> None:
    assert shape({"a": [1, "x"], "b": None}) == {"a": ["int", "str"], "b": "NoneType"}
