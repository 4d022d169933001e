"""Patterns of arguments say how calls end where nothing else does; calls as columns are what a loop makes."""

from __future__ import annotations

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.learning.argument_patterns import pattern_of
from pml.processors.learning.argument_success import ArgumentSuccess
from pml.processors.learning.call_success import area, chances, fit_calls, judge_calls
from pml.processors.learning.calls import Calls

TOOLS = ("a:read", "a:send")


def planted(by: str, traces: int = 150) -> Calls:
    """Two calls a trace; which file's extension, or which channel, decides nearly always how one ends."""
    draws, count = np.random.default_rng(4), traces * 2
    names = (".json", ".xml", ".csv") if by == "path" else ("#prod", "#dev", "#ops")
    words = []
    for name in names:
        value = f"reports/q1{name}" if by == "path" else name
        words.append(orjson.dumps(pattern_of({by: value}, bytes(32)).model_dump(exclude_none=True)).decode())
    patterns = draws.integers(len(names), size=count).astype(np.int32)
    return Calls(
        traces=np.repeat(np.arange(traces), 2),
        tools=draws.integers(len(TOOLS), size=count).astype(np.int32),
        patterns=patterns,
        success=(patterns == 0) ^ (draws.random(count) < 0.02),
        tool_words=TOOLS,
        pattern_words=words,
    )


@pytest.mark.parametrize("by", ["path", "channel"])
def test_where_only_extension_or_channel_decides_only_arguments_tell(by: str) -> None:
    calls = planted(by)
    judged = judge_calls(calls, np.arange(150), seed=1)
    assert judged is not None
    report = judged.report(seed=1)
    assert report["learners"]["with arguments"]["auc"] >= 0.9
    assert report["learners"]["without arguments"]["auc"] <= 0.6
    assert (report["used"], report["calls"]) == (True, 300)
    assert report["gain"]["interval"][0] > 0.1


def test_of_few_groups_arguments_are_not_used_however_sure_they_seem() -> None:
    """Two groups that went well leave the bootstrap without any doubt."""
    judged = judge_calls(planted("path"), np.arange(150) % 2, seed=1)
    assert judged is not None
    report = judged.report(seed=1)
    assert (report["gain"]["interval"][0] > 0.1, report["used"]) == (True, False)


def test_what_has_nothing_to_tell_apart_is_not_judged() -> None:
    calls = planted("path")
    assert judge_calls(calls, np.zeros(150, dtype=np.int64), seed=1) is None
    assert judge_calls(calls.at(np.flatnonzero(calls.success)), np.arange(150), seed=1) is None
    assert judge_calls(calls.at(np.zeros(0, dtype=np.int64)), np.arange(150), seed=1) is None


def test_calls_of_a_kind_counted_teach_what_they_teach_one_by_one() -> None:
    calls = planted("channel", traces=20)
    tools = [TOOLS[place] for place in calls.tools]
    patterns = [orjson.loads(calls.pattern_words[place]) for place in calls.patterns]
    plain = ArgumentSuccess.fit(tools, patterns, calls.success).probabilities(tools, patterns)
    assert np.allclose(chances(fit_calls(calls), calls), plain)


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=12))
def test_the_area_is_the_share_of_pairs_in_order(calls: list[tuple[int, bool]]) -> None:
    scores, success = np.array([score for score, _ in calls], dtype=np.float64), [good for _, good in calls]
    pairs = [
        (one > other) + 0.5 * (one == other)
        for one, good in zip(scores, success, strict=True)
        for other, well in zip(scores, success, strict=True)
        if good and not well
    ]
    expected = np.mean(pairs) if pairs else np.nan
    assert area(scores, np.array(success)) == pytest.approx(expected, nan_ok=True)


@given(st.lists(st.integers(0, 4), max_size=8), st.permutations(range(5)), st.integers(0, 5))
def test_calls_of_some_traces_are_those_in_their_new_numbers(
    traces: list[int], order: list[int], count: int
) -> None:
    places = np.arange(len(traces), dtype=np.int32)
    words = tuple(str(place) for place in places)
    calls = Calls(np.array(sorted(traces), dtype=np.int64), places, places, places > 3, words, words)
    rows = np.array(order[:count], dtype=np.int64)
    found = calls.of_traces(rows)
    expected = [
        (number, place)
        for number, row in enumerate(rows.tolist())
        for place, trace in enumerate(sorted(traces))
        if trace == row
    ]
    assert list(zip(found.traces.tolist(), found.tools.tolist(), strict=True)) == expected
    kinds = found.kinds()
    assert [kinds.tools[kind] for kind in kinds.of.tolist()] == [str(place) for _, place in expected]


def test_columns_of_calls_belong_together() -> None:
    none = np.zeros(0, dtype=np.int32)
    with pytest.raises(ValueError, match="each call has a trace"):
        Calls(np.zeros(1, dtype=np.int64), none, none, none > 0, (), ())
