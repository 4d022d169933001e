"""The traces of like requests vote: once for what they called, and in order for what they had left."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.processors.learning.like_traces import LATER, STRANGER, WIDTH, LikeTraces
from pml.processors.learning.traces import NO_TEXT, TraceSet
from tests.processors.learning.small_traces import LISTS, SIZE, trace_set

POINTS = np.array([[1, 0], [0.8, 0.6], [0, 1]], dtype=np.float32)
TEXTS = st.lists(st.sampled_from([NO_TEXT, 0, 1, 2]), min_size=6, max_size=6)


def votes_twin(traces: TraceSet, text: int, history: list[int]) -> dict[str, dict[int, float]]:
    """Every trace votes, one after another."""
    lists = [traces.items[a:b].tolist() for a, b in zip(traces.offsets[:-1], traces.offsets[1:], strict=True)]
    known = [
        (each, int(traces.texts[end - 1]))
        for each, end in zip(lists, traces.offsets[1:], strict=True)
        if each and traces.texts[end - 1] != NO_TEXT
    ]
    found: dict[str, Counter[int]] = {name: Counter() for name in ("wanted", "ends_with", "remaining")}
    if text == NO_TEXT or not known:
        return {name: dict(each) for name, each in found.items()}
    nearness = [float(POINTS[text].astype(float) @ POINTS[of].astype(float)) for _, of in known]
    total = alike = 0.0
    called = Counter(item for item in history if item)
    for (items, _), near in zip(known, nearness, strict=True):
        vote = float(np.exp((near - max(nearness)) / WIDTH))
        like = vote * (STRANGER + len({*items} & {*called}) / max(1, len(called)))
        total, alike = total + vote, alike + like
        left = Counter(called)
        for item in {*items} - {0}:
            found["wanted"][item] += vote
        if items[-1]:
            found["ends_with"][items[-1]] += vote
        for item in filter(None, items):
            if left[item] > 0:
                left[item] -= 1
            else:
                found["remaining"][item] += like
                like *= LATER
    return {
        name: {item: value / (alike if name == "remaining" else total) for item, value in each.items()}
        for name, each in found.items()
    }


@settings(max_examples=40)
@given(LISTS, TEXTS)
def test_votes_are_those_counted_one_by_one(lists: list[list[int]], texts: list[int]) -> None:
    traces = trace_set(lists, texts=texts[: len(lists)])
    asked = traces.positions(0)
    found = LikeTraces.fit(traces, SIZE, POINTS).signals(traces.prefixes(asked, POINTS))
    histories = [each[:place] for each in lists for place in range(len(each))]
    for row, history in enumerate(histories):
        told = votes_twin(traces, int(traces.texts[asked[row]]), history)
        for name, values in found.items():
            expected = [told[name].get(item, 0.0) for item in range(SIZE)]
            assert values[row].tolist() == pytest.approx(expected, abs=1e-6)


def test_who_may_go_on_does_not_vote() -> None:
    traces = trace_set([[1, 2], [3], [4]], texts=[0, 0, 0])
    found = LikeTraces.fit(replace(traces, settled=np.array([True, True, False, True])), SIZE, POINTS)
    assert (found.items.tolist(), found.offsets.tolist()) == ([1, 2, 4], [0, 2, 3])
    nobody = LikeTraces.fit(replace(traces, settled=np.zeros(4, dtype=np.bool_)), SIZE, POINTS)
    assert not nobody.signals(traces.prefixes(traces.positions(), POINTS))["wanted"].any()


def test_arrays_say_the_same_and_the_latest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pml.processors.learning.like_traces.TRACES_MOST", 2)
    monkeypatch.setattr("pml.processors.learning.like_traces.ITEMS_MOST", 2)
    traces = trace_set([[1], [2, 3, 4], [3]], texts=[0, 0, 0])
    found = LikeTraces.fit(TraceSet(**(traces.to_arrays() | {"times_ms": np.array([1, 2, 3])})), SIZE, POINTS)
    assert found.items.tolist() == [3, 4, 3]
    again = LikeTraces.from_arrays(found.to_arrays())
    prefixes = traces.prefixes(traces.positions(), POINTS)
    for name, values in found.signals(prefixes).items():
        assert again.signals(prefixes)[name].tolist() == values.tolist()
    with pytest.raises(ValueError, match="train it again"):
        LikeTraces.from_arrays({"size": np.array([3])})


def test_without_texts_or_traces_nothing_is_said() -> None:
    traces = trace_set([[1, 2]], texts=[0])
    asked = traces.positions()
    assert not LikeTraces.fit(traces, SIZE, POINTS).signals(traces.prefixes(asked))["wanted"].any()
    nothing = LikeTraces.fit(trace_set([[]]), SIZE, POINTS)
    assert not nothing.signals(traces.prefixes(asked, POINTS))["remaining"].any()
