"""What came after a run is known once it ended longer ago than sessions pause; until then nobody knows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.learning.pauses import KNOWN_LEAST, SHARE, settled

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS


def settled_of(*sessions: list[int]) -> list[list[bool]]:
    times_ms = np.array([time for each in sessions for time in each], dtype=np.int64)
    offsets = np.cumsum([0, *map(len, sessions)], dtype=np.int64)
    found = settled(times_ms, offsets).tolist()
    return [found[start:end] for start, end in pairwise(offsets.tolist())]


def test_who_was_quiet_for_longer_than_sessions_pause_is_over() -> None:
    """Sessions pause for a minute: the one that did something half a minute ago may go on."""
    sessions = [[start, start + MINUTE_MS] for start in range(0, HOUR_MS, 10 * MINUTE_MS)]
    found = settled_of(*sessions, [HOUR_MS], [HOUR_MS + MINUTE_MS // 2])
    assert found == [[True, True]] * 6 + [[False], [False]]


def test_what_went_on_just_now_is_as_little_known_as_what_did_not() -> None:
    sessions = [[start, start + MINUTE_MS] for start in range(0, HOUR_MS, 10 * MINUTE_MS)]
    assert settled_of(*sessions, [HOUR_MS - 1, HOUR_MS + MINUTE_MS // 2])[-1] == [False, False]


def test_one_session_that_slept_for_a_night_keeps_none_open() -> None:
    night_ms = 10 * HOUR_MS
    sessions = [[start * MINUTE_MS, (start + 1) * MINUTE_MS] for start in range(0, 1_200, 4)]
    assert settled_of([0, night_ms], *sessions) == [[True, True]] * 300 + [[False, False]]
    # Where every second session does, who was quiet for an hour may go on.
    others = [[first, second + night_ms] for first, second in sessions]
    assert not settled_of(*sessions, *others)[-2][-1]


def test_where_sessions_pause_for_as_long_as_there_is_a_log_all_are_taken_as_over() -> None:
    """Thirty that began together and are not done: nobody knows whether one of them is."""
    assert settled_of(*([number, number + 5 * MINUTE_MS] for number in range(30))) == [[True, True]] * 30


def test_where_none_ever_went_on_all_are_over() -> None:
    assert settled_of([5], [7], []) == [[True], [True], []]
    assert settled_of() == []


@pytest.mark.parametrize("log_hours", [8, 24, 72])
def test_how_often_sessions_go_on_is_not_thought_more_than_it_is(log_hours: int) -> None:
    """Half of them do, one in twenty of these after hours: what is known says so however long the log is."""
    generator = np.random.default_rng(log_hours)
    sessions = []
    for start in np.sort(generator.integers(0, log_hours * HOUR_MS, 20_000)).tolist():
        hours = generator.random() < 0.05
        pause_ms = int(generator.uniform(2, 4) * HOUR_MS if hours else generator.uniform(1, 5) * MINUTE_MS)
        goes_on = generator.random() < 0.5 and start + pause_ms < log_hours * HOUR_MS
        sessions.append([start, start + pause_ms] if goes_on else [start])
    first = [(len(each) > 1, known[0]) for each, known in zip(sessions, settled_of(*sessions), strict=True)]
    asked = [goes_on for goes_on, known in first if known]
    assert len(asked) < len(sessions)
    assert np.mean(asked) == pytest.approx(0.5, abs=0.02)


@given(st.lists(st.lists(st.integers(0, 1_000), max_size=4).map(sorted), max_size=8))
def test_it_is_what_a_loop_over_sessions_says(sessions: list[list[int]]) -> None:
    pauses = sorted(after - before for each in sessions for before, after in pairwise(each))
    found = settled_of(*sessions)
    if not pauses:
        assert all(map(all, found))
        return
    last = max(each[-1] for each in sessions if each)
    longest = pauses[int(np.ceil(SHARE * (len(pauses) - 1)))]
    quiet = [[last - time > longest for time in each] for each in sessions]
    every = [told for each in quiet for told in each]
    enough = sum(every) >= KNOWN_LEAST * len(every) and any(told for each in quiet for told in each[:-1])
    assert found == (quiet if enough else [[True] * len(each) for each in sessions])
