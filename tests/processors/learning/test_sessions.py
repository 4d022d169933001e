"""Who learns from some sessions has numbers for what they called, what is listed, and what that contains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pml.processors.learning.judging import judge
from pml.processors.learning.learners import LEARNERS
from pml.processors.learning.sessions import Sessions
from pml.processors.learning.traces import NO_TEXT, TraceSet
from pml.processors.learning.training import selected
from pml.processors.learning.vocabulary import Vocabulary
from pml.processors.memory.embedding import HashedNgrams
from tests.processors.learning.small_sessions import drawn_sessions

CONTAINED = {
    "cap_report": ("mail:send", "files:read", "disk:format"),
    "cap_weekly": ("cap_report",),
    "cap_unheard": ("files:read",),
}


def test_members_of_capabilities_are_told_in_numbers_as_far_as_there_are_any() -> None:
    names = ("cap_report", "cap_weekly", "files:read", "mail:send")
    sessions = replace(
        drawn_sessions(1, 1, by_request=False), vocabulary=Vocabulary.of(names), contained=CONTAINED
    )
    number = {name: int(sessions.vocabulary.ids([name])[0]) for name in names}
    assert sessions.members() == {
        number["cap_report"]: sorted([number["files:read"], number["mail:send"]]),
        number["cap_weekly"]: [number["cap_report"]],
    }
    assert drawn_sessions(1, 1, by_request=False).members() == {}


def test_what_only_other_sessions_called_is_nobodys_member() -> None:
    sessions = drawn_sessions(2, 1, by_request=False, items=1)
    sessions = replace(sessions, listed=("cap_report",), contained=CONTAINED)
    traces = replace(sessions.traces, items=sessions.vocabulary.ids(["files:read", "mail:send"]))
    known = replace(sessions, traces=traces).known_from(np.array([0]))
    owner, member = (int(known.vocabulary.ids([name])[0]) for name in ("cap_report", "files:read"))
    assert known.members() == {owner: [member]}


def test_what_items_were_called_with_stays_with_them() -> None:
    sessions = drawn_sessions(4, 1, by_request=False, items=3)
    looks = np.arange(12, dtype=np.float32)[:, None]
    sessions = replace(sessions, traces=replace(sessions.traces, looks=looks))
    rows = np.array([2, 0])
    for known in (sessions.known_from(rows), sessions.asked_about(np.array([1]), rows)):
        assert known.traces.looks is looks
    kept = selected(sessions, rows).traces.looks
    assert kept is not None
    assert kept.ravel().tolist() == [6, 7, 8, 0, 1, 2]


def endings(count: int, repeated: int = 0) -> Sessions:
    """Sessions that read a file and then call a capability of their own, which their request describes; the
    first of them is called again by so many more."""
    names = [f"cap_{number:02}" for number in range(count)]
    vocabulary = Vocabulary.of(["files:read", *names])
    read, *others = vocabulary.ids(["files:read", *names, *names[:1] * repeated]).tolist()
    texts = tuple(f"make report number {number} for {number * 7}" for number in range(count))
    asked = [*range(count), *[0] * repeated]
    traces = TraceSet(
        items=np.array([item for other in others for item in (read, other)], dtype=np.int32),
        success=np.ones(2 * len(others), dtype=np.float32),
        offsets=np.arange(len(others) + 1) * 2,
        outcomes=np.ones(len(others), dtype=np.float32),
        weights=np.ones(len(others), dtype=np.float32),
        groups=np.arange(len(others)),
        times_ms=np.arange(len(others)) * 1_000,
        texts=np.array([text for number in asked for text in (NO_TEXT, number)]),
        end_texts=np.array(asked),
    )
    described = dict(zip(names, texts, strict=True))
    sessions = Sessions(vocabulary, traces, texts, described, ["files:read", *names])
    return replace(sessions, learned={name: sessions.first_groups()[name] for name in names})


def test_who_is_asked_about_a_session_does_not_know_what_only_that_taught() -> None:
    """The catalog of now has it all: a learned capability, and the words of the session that it is from."""
    sessions = endings(3, repeated=1)
    known = sessions.asked_about(np.array([0, 1]), np.array([2, 3]))
    assert set(known.vocabulary.names) == {"files:read", "cap_00", "cap_02"}
    assert known.descriptions.keys() == {"cap_02"}
    assert sessions.known_from(np.array([2, 3])).descriptions == sessions.descriptions


def test_the_first_session_to_call_something_is_the_one_that_ended_first() -> None:
    sessions = endings(3, repeated=2)
    assert sessions.first_groups() == {"cap_00": 0, "cap_01": 1, "cap_02": 2, "files:read": 0}
    later = replace(sessions.traces, times_ms=np.array([9, 1, 2, 3, 4]) * 1_000)
    assert replace(sessions, traces=later).first_groups()["cap_00"] == 3


def test_nothing_that_only_the_asked_sessions_taught_is_foreseen_in_them() -> None:
    sessions = endings(20)
    learners = {"cosine": LEARNERS["cosine"]}
    kept, leaking = (
        judge(each, HashedNgrams(), 1, learners=learners).ways["cosine"].quality.hit_1.mean()
        for each in (sessions, replace(sessions, learned={}))
    )
    assert kept == 0
    assert leaking > 0.9
