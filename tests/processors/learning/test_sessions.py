"""Who learns from some sessions has numbers for what they called, what is listed, and what that contains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pml.processors.learning.vocabulary import Vocabulary
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
