"""A session is over when it was quiet for longer than sessions pause; until then nobody knows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.learning.pauses import OVER_LEAST, SHARE, over

MINUTE_MS = 60_000


def over_of(*sessions: list[int]) -> list[bool]:
    times_ms = np.array([time for each in sessions for time in each], dtype=np.int64)
    return over(times_ms, np.cumsum([0, *map(len, sessions)], dtype=np.int64)).tolist()


def test_who_was_quiet_for_longer_than_sessions_pause_is_over() -> None:
    """Sessions pause for a minute: the one that did something half a minute ago may go on."""
    hour_ms = 60 * MINUTE_MS
    sessions = [[start, start + MINUTE_MS] for start in range(0, hour_ms, 10 * MINUTE_MS)]
    assert over_of(*sessions, [hour_ms], [hour_ms + MINUTE_MS // 2]) == [True] * 6 + [False, False]


def test_one_session_that_slept_for_a_night_keeps_none_open() -> None:
    night_ms = 600 * MINUTE_MS
    sessions = [[start * MINUTE_MS, (start + 1) * MINUTE_MS] for start in range(0, 1_200, 4)]
    slept = [0, night_ms]
    assert over_of(slept, *sessions) == [True] * 300 + [False]
    # Where every second session does, who was quiet for an hour may go on.
    others = [[first, second + night_ms] for first, second in sessions]
    assert not over_of(*sessions, *others)[-2]


def test_where_sessions_pause_for_as_long_as_there_is_a_log_all_are_taken_as_over() -> None:
    """Thirty that began together and are not done: nobody knows whether one of them is."""
    assert over_of(*([number, number + 5 * MINUTE_MS] for number in range(30))) == [True] * 30


def test_where_none_ever_went_on_all_are_over() -> None:
    assert over_of([5], [7], []) == [True] * 3
    assert over_of() == []


@given(st.lists(st.lists(st.integers(0, 1_000), max_size=4).map(sorted), max_size=8))
def test_it_is_what_a_loop_over_sessions_says(sessions: list[list[int]]) -> None:
    pauses = sorted(after - before for each in sessions for before, after in pairwise(each))
    found = over_of(*sessions)
    if not pauses:
        assert all(found)
        return
    last = max(each[-1] for each in sessions if each)
    longest = pauses[int(np.ceil(SHARE * (len(pauses) - 1)))]
    quiet = [last - each[-1] > longest for each in sessions if each]
    expected = quiet if sum(quiet) >= OVER_LEAST * len(quiet) else [True] * len(quiet)
    assert [told for told, each in zip(found, sessions, strict=True) if each] == expected
    assert all(told for told, each in zip(found, sessions, strict=True) if not each)
