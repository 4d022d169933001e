"""Columns of traces say the same as lists of lists."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.learning.grouping import spans, summed
from pml.processors.learning.traces import NO_TEXT, TraceSet, success_by_ends
from tests.processors.learning.small_traces import LISTS, prefixes_of, trace_set

START, NONE = 9, -1


@given(LISTS, st.data())
def test_selected_traces_are_those_of_the_lists(lists: list[list[int]], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(lists) - 1)))
    weights = [float(number) for number in range(len(lists))]
    went = [[(item + row) % 2 for item in items] for row, items in enumerate(lists)]
    found = trace_set(lists, weights, success=[one for each in went for one in each])
    found = found.selected(np.array(rows, dtype=np.int64))
    expected = trace_set(
        [lists[row] for row in rows],
        [weights[row] for row in rows],
        texts=rows,
        success=[one for row in rows for one in went[row]],
    )
    for name in ("items", "success", "offsets", "weights", "texts"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist()
    assert found.groups.tolist() == rows


@given(LISTS)
def test_every_item_but_the_first_is_asked_for_with_what_came_before(lists: list[list[int]]) -> None:
    traces = trace_set(lists)
    asked = traces.positions()
    window = traces.prefixes(asked).windows(3, START, NONE)
    expected = [
        ([*reversed(items[:place]), START, NONE, NONE][:3], items[place])
        for items in lists
        for place in range(1, len(items))
    ]
    assert [(row.tolist(), int(traces.items[at])) for row, at in zip(window, asked, strict=True)] == expected


def test_a_window_of_histories_without_any_item() -> None:
    assert prefixes_of([], []).windows(2, START, NONE).tolist() == [[START, NONE]] * 2


def test_points_of_texts_follow_their_items() -> None:
    traces = trace_set([[1, 2], [3, 4, 1]], texts=[1, NO_TEXT])
    points = np.array([[9.0, 9.0], [1.0, 2.0]], dtype=np.float32)
    found = traces.prefixes(traces.positions(), points).texts
    assert found is not None
    assert found.tolist() == [[1, 2], [0, 0], [0, 0]]
    without = trace_set([[1, 2]], texts=[NO_TEXT])
    none = without.prefixes(without.positions(), points[:0]).texts
    assert none is not None
    assert none.tolist() == [[0, 0]]


def test_where_traces_end_the_text_is_the_one_that_was_visible_then() -> None:
    traces = replace(trace_set([[1, 2], [3], [4, 1]], texts=[0, 0, 1]), end_texts=np.array([1, NO_TEXT, 0]))
    points = np.array([[9.0, 9.0], [1.0, 2.0]], dtype=np.float32)
    found = traces.selected(np.array([2, 1, 0])).whole(np.array([0, 1, 2]), points)
    assert found.texts is not None
    assert found.text_rows is not None
    assert (found.texts.tolist(), found.text_rows.tolist()) == ([[9, 9], [0, 0], [1, 2]], [0, NO_TEXT, 1])
    assert (found.ends - found.starts).tolist() == [2, 1, 2]


def test_at_their_end_are_traces_that_called_something_and_do_not_go_on() -> None:
    traces = trace_set([[1, 2], [], [3], [4, 1, 2]])
    assert traces.ended.tolist() == [0, 2, 3]
    assert traces.questions().tolist() == traces.positions().tolist() == [1, 4, 5]
    told = replace(traces, settled=np.array([True, True, False, True, False, False]))
    assert told.ended.tolist() == [0]
    assert (told.questions().tolist(), told.questions(0).tolist()) == ([1, 4], [0, 1, 2, 3, 4])
    some = told.selected(np.array([3, 2, 0]))
    assert (some.ended.tolist(), some.questions().tolist()) == ([2], [1, 5])
    assert TraceSet(**told.to_arrays()).ended.tolist() == [0]
    with pytest.raises(ValueError, match="another length"):
        replace(traces, settled=np.array([True]))


def test_columns_survive_a_file() -> None:
    traces, file = trace_set([[1], [], [2, 3]]), io.BytesIO()
    np.savez(file, **traces.to_arrays())
    file.seek(0)
    with np.load(file, allow_pickle=False) as read:
        again = TraceSet(**read)
    assert all(np.array_equal(column, again.to_arrays()[name]) for name, column in traces.to_arrays().items())


def test_columns_that_do_not_belong_together_are_refused() -> None:
    traces = trace_set([[1, 2], [3]])
    with pytest.raises(ValueError, match="begin with 0"):
        replace(traces, offsets=np.array([0, 1, 2]))
    with pytest.raises(ValueError, match="must not fall"):
        replace(traces, offsets=np.array([0, 4, 3]))
    with pytest.raises(ValueError, match="another length"):
        replace(traces, groups=np.array([1]))
    with pytest.raises(ValueError, match="another length"):
        replace(traces, success=np.ones(2, dtype=np.float32))
    with pytest.raises(ValueError, match="not negative"):
        replace(traces, weights=np.array([1, -1], dtype=np.float32))


@given(LISTS)
def test_of_traces_that_are_known_by_their_ends_the_last_item_went_so(lists: list[list[int]]) -> None:
    outcomes = [number % 3 / 2 for number in range(len(lists))]
    offsets = np.cumsum([0, *map(len, lists)], dtype=np.int64)
    found = success_by_ends(offsets, np.array(outcomes, dtype=np.float32))
    expected = [
        outcome if place == len(items) - 1 else 1
        for items, outcome in zip(lists, outcomes, strict=True)
        for place in range(len(items))
    ]
    assert found.tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 4))))
def test_spans_and_sums(pairs: list[tuple[int, int]]) -> None:
    starts = np.array([start for start, _ in pairs], dtype=np.int64)
    lengths = np.array([length for _, length in pairs], dtype=np.int64)
    expected = [start + step for start, length in pairs for step in range(length)]
    assert spans(starts, lengths).tolist() == expected
    sums = summed(starts.astype(np.float64), lengths, 5)
    assert sums.tolist() == [sum(s for s, length in pairs if length == group) for group in range(5)]


@given(LISTS, st.data())
def test_before_an_item_the_look_of_the_one_before_it_is_known_never_its_own(
    lists: list[list[int]], data: st.DataObject
) -> None:
    traces = trace_set(lists)
    count = len(traces.items)
    # Each item's look is its own number, from 1.
    traces = replace(traces, looks=np.arange(1, count + 1, dtype=np.float32)[:, None])
    rows = np.array(data.draw(st.lists(st.integers(0, len(lists) - 1))), dtype=np.int64)
    expected = [
        0 if place == 0 else int(start) + place
        for start, items in zip(traces.offsets, lists, strict=False)
        for place in range(len(items))
    ]
    found = traces.prefixes(np.arange(count)).features
    assert found is not None
    assert found.ravel().tolist() == expected
    chosen = traces.selected(rows)
    assert chosen.looks is not None
    own = [int(traces.offsets[row]) + place + 1 for row in rows for place in range(len(lists[row]))]
    assert chosen.looks.ravel().tolist() == own
    called = np.flatnonzero(chosen.lengths > 0)
    ended = chosen.whole(called).features
    assert ended is not None
    assert ended.ravel().tolist() == [int(traces.offsets[row + 1]) for row in rows[called]]


def test_looks_are_kept_with_the_columns_and_belong_to_them() -> None:
    traces = trace_set([[1, 2], [3]])
    assert "looks" not in traces.to_arrays()
    assert traces.prefixes(traces.positions()).features is None
    told = replace(traces, looks=np.ones((3, 2), dtype=np.float32))
    again = TraceSet(**told.to_arrays())
    assert again.looks is not None
    assert again.looks.tolist() == np.ones((3, 2)).tolist()
    for wrong in (np.ones((2, 2), dtype=np.float32), np.ones(3, dtype=np.float32)):
        with pytest.raises(ValueError, match="are not rows"):
            replace(traces, looks=wrong)
