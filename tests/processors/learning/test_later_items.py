"""What comes later and what before is counted once a trace, and the arrays say the same."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings

from pml.processors.learning import later_items as module
from pml.processors.learning.later_items import LaterItems
from tests.processors.learning.small_traces import LISTS, SIZE, trace_set


def in_order(lists: list[list[int]], one: int, other: int) -> int:
    """In how many lists `one` stands before `other`."""
    return sum(
        any(a == one and b == other for place, a in enumerate(each) for b in each[place + 1 :])
        for each in lists
    )


@settings(max_examples=40)
@given(LISTS)
def test_signals_are_those_counted_one_by_one(lists: list[list[int]]) -> None:
    traces = trace_set(lists)
    found = LaterItems.fit(traces, SIZE).signals(traces.prefixes(traces.positions()))
    histories = [each[:place] for each in lists for place in range(1, len(each))]
    for row, history in enumerate(histories):
        called = [item for item in history if item]
        for item in range(1, SIZE):
            later, before = [], []
            for each in called:
                ahead, behind = in_order(lists, each, item), in_order(lists, item, each)
                later.append(ahead / (sum(each in own for own in lists) + 1))
                before.append(behind / (behind + ahead + 1))
            assert found["later"][row, item] == pytest.approx(np.mean(later) if called else 0)
            assert found["later_most"][row, item] == pytest.approx(max(later, default=0))
            assert found["before"][row, item] == pytest.approx(np.mean(before) if called else 0)


def test_what_lies_too_far_apart_is_no_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "APART_MOST", 1)
    found = LaterItems.fit(trace_set([[1, 2, 3]]), SIZE)
    assert [divmod(key, SIZE) for key in found.keys.tolist()] == list(pairwise([1, 2, 3]))


def test_traces_count_by_their_weight_and_arrays_say_the_same() -> None:
    found = LaterItems.fit(trace_set([[1, 2], [1, 3]], weights=[1.0, 0.5]), SIZE)
    assert found.traces.tolist() == [0, 1.5, 1, 0.5, 0]
    again = LaterItems.from_arrays(found.to_arrays())
    asked = trace_set([[1, 2]])
    prefixes = asked.prefixes(asked.positions())
    for name, values in found.signals(prefixes).items():
        assert again.signals(prefixes)[name].tolist() == values.tolist()
    assert again.signals(prefixes)["later"][0].tolist() == [0, 0, 1 / 2.5, 0.5 / 2.5, 0]
    with pytest.raises(ValueError, match="train it again"):
        LaterItems.from_arrays({"traces": found.traces})


def test_nothing_was_called() -> None:
    found = LaterItems.fit(trace_set([[]]), SIZE)
    asked = trace_set([[1, 2]])
    assert not found.signals(asked.prefixes(asked.positions()))["later"].any()
