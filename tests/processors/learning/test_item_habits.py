"""Where an item stands in a trace, how often it is called, and for what."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pml.processors.learning.item_habits import ItemHabits
from pml.processors.learning.traces import NO_TEXT
from tests.processors.learning.small_traces import SIZE, trace_set

POINTS = np.array([[1, 0], [0, 1]], dtype=np.float32)


def test_habits_are_counted_by_the_weight_of_traces() -> None:
    traces = trace_set([[1, 2], [2, 1, 2]], weights=[1.0, 0.5], texts=[0, 1])
    found = ItemHabits.fit(traces, SIZE, POINTS)
    assert found.counts.tolist() == [0, 1.5, 2, 0, 0]
    assert found.places.tolist() == pytest.approx([0, 0.5 / 1.5, (1 + 0.5 * 0 + 0.5 * 2) / 2, 0, 0])
    assert found.firsts[1:3] == pytest.approx([1.5 / 3.5, 1.0 / 4])
    assert found.lasts[1:3] == pytest.approx([0.5 / 3.5, 2.0 / 4])
    assert found.firsts[3] == found.lasts[3] == 0.25


def test_how_often_one_is_the_last_is_counted_where_it_is_known_what_came() -> None:
    traces = replace(
        trace_set([[1, 2], [1], [1]], texts=[0, 0, 0]), settled=np.array([True, True, True, False])
    )
    found = ItemHabits.fit(traces, SIZE, POINTS)
    assert found.counts[1] == 3
    assert found.lasts[1:3] == pytest.approx([(1 + 0.5) / (2 + 2), (1 + 0.5) / (1 + 2)])


def test_an_item_is_like_the_requests_that_it_was_called_for() -> None:
    traces = trace_set([[1, 2], [1, 3], [4]], texts=[0, 1, NO_TEXT])
    found = ItemHabits.fit(traces, SIZE, POINTS)
    asked = traces.prefixes(np.array([1]), POINTS)
    assert found.like(asked)[0] == pytest.approx([0, 2**-0.5, 1, 0, 0])
    assert not found.like(traces.prefixes(np.array([1]))).any()


def test_arrays_say_the_same() -> None:
    found = ItemHabits.fit(trace_set([[1, 2]], texts=[0]), SIZE, POINTS)
    again = ItemHabits.from_arrays(found.to_arrays())
    for name, column in found.to_arrays().items():
        assert again.to_arrays()[name].tolist() == column.tolist()
    with pytest.raises(ValueError, match="train it again"):
        ItemHabits.from_arrays({"counts": found.counts})
