"""Columns become sessions as a plain loop over runs would make them."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.processors.learning.pauses import settled
from pml.processors.learning.session_columns import (
    EXPLORATORY_WEIGHT,
    MOCKED_WEIGHT,
    session_names,
    sessions_of,
)
from pml.processors.learning.sessions import Sessions
from pml.processors.learning.traces import NO_TEXT

TOOLS = ("files:read", "git:log", "mail:send")
CAPABILITIES = ("", "cap_a", "cap_b")
INTENTS = ("", "look", "send")

RUN = st.fixed_dictionaries(
    {
        "tenant": st.integers(0, 1),
        "session_id": st.sampled_from(["s1", "s2"]),
        "epoch": st.integers(0, 1),
        "ended_at_us": st.integers(0, 3).map(lambda number: number * 1_000),
        "capability": st.integers(0, 2),
        "intent": st.integers(0, 2),
        "success": st.integers(0, 1),
        "exploratory": st.integers(0, 1),
        "group": st.integers(0, 2),
        "calls": st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), max_size=3),
    }
)


def columns_of(runs: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """The columns of a training set; the place of a run is its place in the log."""
    calls = [call for run in runs for call in run["calls"]]
    plain = {
        name: np.array([run[name] for run in runs], dtype=dtype)
        for name, dtype in (
            *(("tenant", "<i4"), ("capability", "<i4"), ("intent", "<i4"), ("session_id", "S2")),
            *(("epoch", "<u8"), ("ended_at_us", "<i8"), ("success", "|u1"), ("exploratory", "|u1")),
            ("group", "<u8"),
        )
    }
    return {
        **plain,
        "log_offset": np.arange(len(runs), dtype="<u8"),
        "offsets": np.cumsum([0, *(len(run["calls"]) for run in runs)]),
        "tool": np.array([tool for tool, _ in calls], dtype="<i4"),
        "call_mocked": np.array([mocked for _, mocked in calls], dtype="|u1"),
        "tool_words": np.array(TOOLS),
        "capability_words": np.array(CAPABILITIES),
        "intent_words": np.array(INTENTS),
    }


def element(run: dict[str, Any]) -> str | None:
    """What a run was, in a session."""
    if len(run["calls"]) == 1:
        return TOOLS[run["calls"][0][0]]
    return CAPABILITIES[run["capability"]] or None


def weight(run: dict[str, Any]) -> float:
    if any(mocked for _, mocked in run["calls"]):
        return MOCKED_WEIGHT
    return EXPLORATORY_WEIGHT if run["exploratory"] else 1.0


def twin(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Session by session, a run at a time."""
    held: dict[Any, list[tuple[int, int, dict[str, Any]]]] = defaultdict(list)
    for place, run in enumerate(runs):
        if run["calls"]:
            key = (run["tenant"], run["session_id"], run["epoch"])
            held[key].append((run["ended_at_us"], place, run))
    found = []
    for key in sorted(held):
        ordered = [run for _, _, run in sorted(held[key], key=lambda each: each[:2])]
        before = ["", *(INTENTS[run["intent"]] for run in ordered[:-1])]
        found.append(
            {
                "name": key[1:],
                "items": [element(run) for run in ordered],
                "texts": before,
                "end_text": INTENTS[ordered[-1]["intent"]],
                "success": [run["success"] for run in ordered],
                "outcome": sum(run["success"] for run in ordered) / len(ordered),
                "weight": sum(map(weight, ordered)) / len(ordered),
                "times_ms": [run["ended_at_us"] // 1_000 for run in ordered],
                "time_ms": ordered[-1]["ended_at_us"] // 1_000,
                "same": tuple(run["group"] for run in ordered),
            }
        )
    times = [session["times_ms"] for session in found]
    offsets = np.cumsum([0, *map(len, times)])
    known = settled(np.array([time for each in times for time in each], dtype=np.int64), offsets).tolist()
    parts = (known[start:end] for start, end in pairwise(offsets.tolist()))
    return [{**session, "settled": told} for session, told in zip(found, parts, strict=True)]


@settings(max_examples=60)
@given(st.lists(RUN, max_size=8))
def test_sessions_are_those_of_a_loop_over_runs(runs: list[dict[str, Any]]) -> None:
    found = sessions_of(columns_of(runs), {}, ["new:tool"])
    expected, traces = twin(runs), found.traces
    assert session_names(columns_of(runs)) == [session["name"] for session in expected]
    assert len(traces) == len(expected)
    for number, session in enumerate(expected):
        places = slice(traces.offsets[number], traces.offsets[number + 1])
        assert [found.vocabulary.name(item) for item in traces.items[places].tolist()] == session["items"]
        texts = ["" if row == NO_TEXT else found.texts[row] for row in traces.texts[places].tolist()]
        assert texts == session["texts"]
        last = traces.end_texts[number]
        assert ("" if last == NO_TEXT else found.texts[last]) == session["end_text"]
        assert traces.success[places].tolist() == session["success"]
        assert np.isclose(traces.outcomes[number], session["outcome"])
        assert np.isclose(traces.weights[number], session["weight"])
        assert traces.times_ms[number] == session["time_ms"]
        assert traces.settled is not None
        assert traces.settled[places].tolist() == session["settled"]
    for one, other in zip(range(len(expected)), range(1, len(expected)), strict=False):
        together = expected[one]["same"] == expected[other]["same"]
        assert (traces.groups[one] == traces.groups[other]) == together
    called = {name for session in expected for name in session["items"] if name}
    assert found.vocabulary.names == tuple(sorted(called | {"new:tool"}))


def test_what_the_next_run_is_for_is_not_visible_before_it() -> None:
    run = {
        "tenant": 0,
        "session_id": "s1",
        "epoch": 0,
        "success": 1,
        "exploratory": 0,
        "group": 0,
        "capability": 0,
        "calls": [(0, 0)],
    }
    runs = [{**run, "intent": intent, "ended_at_us": place} for place, intent in enumerate((1, 2, 0, 1))]
    assert seen(sessions_of(columns_of(runs), {})) == [None, "look", "send", None]
    requests = {"request": np.array([0, 0, 1, 0], dtype="<i4"), "request_words": np.array(["", "all of it"])}
    assert seen(sessions_of({**columns_of(runs), **requests}, {})) == [None, None, None, "all of it"]


def test_what_a_client_said_with_the_first_run_is_visible_before_it_and_what_that_was_for_is_not() -> None:
    plain = dict.fromkeys(("tenant", "epoch", "capability", "success", "exploratory", "group"), 0)
    runs = [
        {**plain, "session_id": f"s{number}", "intent": intent, "ended_at_us": place, "calls": [(0, 0)]}
        for number, intent in enumerate((1, 1, 0))
        for place in (1, 2)
    ]
    words = np.array(["", "all of it", "look"])
    requests = {"request": np.array([1, 1, 2, 2, 0, 0], dtype="<i4"), "request_words": words}
    found = seen(sessions_of({**columns_of(runs), **requests}, {}))
    assert found == ["all of it", "all of it", None, "look", None, None]


def seen(found: Sessions) -> list[str | None]:
    """What was visible before each item."""
    return [None if row == NO_TEXT else found.texts[row] for row in found.traces.texts.tolist()]


def test_real_calls_are_those_of_their_session_in_the_order_of_its_runs() -> None:
    plain = dict.fromkeys(("tenant", "epoch", "capability", "intent", "success", "exploratory", "group"), 0)
    runs = [
        {**plain, "session_id": "s2", "ended_at_us": 1_000, "calls": [(0, 0), (1, 1)]},
        {**plain, "session_id": "s1", "ended_at_us": 3_000, "calls": [(1, 0)]},
        {**plain, "session_id": "s1", "ended_at_us": 2_000, "calls": [(2, 0), (0, 0)]},
        {**plain, "session_id": "s1", "ended_at_us": 2_500, "calls": []},
    ]
    columns = columns_of(runs)
    assert sessions_of(columns, {}).calls is None
    patterns = {"call_pattern": np.arange(5, dtype="<i4"), "call_pattern_words": np.array(list("abcde"))}
    found = sessions_of({**columns, **patterns, "call_success": np.array([1, 1, 0, 1, 0])}, {}).calls
    assert found is not None
    kinds = found.kinds()
    told = [(kinds.tools[kind], kinds.patterns[kind]) for kind in kinds.of.tolist()]
    of_first = [("git:log", "c"), ("mail:send", "d"), ("files:read", "e")]
    assert sorted(told[:3]) == sorted(of_first)
    assert told[3:] == [("files:read", "a")]
    assert (found.traces.tolist(), sorted(found.success[:3].tolist())) == ([0, 0, 0, 1], [False, False, True])


def test_a_task_that_was_skipped_or_whose_arguments_could_not_be_made_is_no_call() -> None:
    plain = dict.fromkeys(("tenant", "epoch", "capability", "intent", "success", "exploratory", "group"), 0)
    tasks = [(0, 0), (1, 0), (1, 1), (2, 0), (0, 0)]
    runs = [{**plain, "session_id": "s1", "ended_at_us": 1_000, "calls": tasks}]
    told = {
        "call_pattern": np.array([1, 0, 1, 0, 2], dtype="<i4"),
        "call_pattern_words": np.array(["", "a", "b"]),
        "call_success": np.array([1, 0, 1, 0, 0]),
    }
    found = sessions_of({**columns_of(runs), **told}, {}).calls
    assert found is not None
    assert [found.pattern_words[place] for place in found.patterns.tolist()] == ["a", "b"]
    assert (found.tools.tolist(), found.success.tolist()) == ([0, 0], [True, False])
    none = {**told, "call_pattern": np.zeros(5, dtype="<i4"), "call_pattern_words": np.array([""])}
    empty = sessions_of({**columns_of(runs), **none}, {}).calls
    assert empty is not None
    assert len(empty) == 0
