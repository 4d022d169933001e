"""What is drawn for `benchmarks.learning.serving`: the same sessions among more and more tools."""

from __future__ import annotations

from benchmarks.learning.serving import CALLS, SESSIONS, TOOLS_CALLED, drawn_sessions


def test_the_sessions_are_the_same_however_many_tools_there_are() -> None:
    few, many = drawn_sessions(TOOLS_CALLED, 1), drawn_sessions(3 * TOOLS_CALLED, 1)
    assert few.texts == many.texts
    called = [
        [str(each.vocabulary.names[item - 1]) for item in each.traces.items.tolist()] for each in (few, many)
    ]
    assert called[0] == called[1]
    assert len(called[0]) == SESSIONS * CALLS
    assert {name: few.descriptions[name] for name in set(called[0])}.items() <= many.descriptions.items()
    assert (few.vocabulary.size, many.vocabulary.size) == (1 + TOOLS_CALLED, 1 + 3 * TOOLS_CALLED)


def test_each_request_says_what_its_calls_do() -> None:
    sessions = drawn_sessions(TOOLS_CALLED, 2)
    items = sessions.traces.items.reshape(SESSIONS, CALLS)
    for text, row in zip(sessions.texts, items.tolist(), strict=True):
        assert all(sessions.descriptions[str(sessions.vocabulary.names[item - 1])] in text for item in row)
