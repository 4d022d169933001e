"""A conversation whose session is full goes on in another one, and nothing that is old is served there."""

from __future__ import annotations

import pytest

from pml.processors.workflow.obedience import RUNS_LIVE, RUNS_REMEMBERED, SessionFull
from pml.schemas.errors import Refused
from pml.schemas.identifiers import is_name
from pml.streams.mcp_server.session_parts import (
    KNOWN_S,
    PARTS_TRIED,
    Conversation,
    Part,
    SessionParts,
    is_part,
    part_name,
)


class Sessions:
    """Takes runs in all sessions but those that are full, and keeps where each was sent."""

    def __init__(self, *full: str, reason: str = RUNS_REMEMBERED, times: int = 1_000_000) -> None:
        self.full, self.reason, self.times = set(full), reason, times
        self.asked: list[Part] = []

    async def run(self, part: Part, wait_s: float) -> str | None:
        self.asked.append(part)
        if part.session_id in self.full and self.times > 0:
            self.times -= 1
            raise SessionFull("no room", reason=self.reason)
        return part.session_id

    @property
    def names(self) -> list[str | None]:
        return [part.session_id for part in self.asked]


class Clock:
    def __init__(self) -> None:
        self.time_s = 1_000.0

    def __call__(self) -> float:
        return self.time_s


def conversation(parts: SessionParts, named: str | None = "a", from_first: bool = False) -> Conversation:
    return Conversation(parts, "t", named, from_first=from_first)


async def test_a_conversation_stays_in_its_session_while_that_takes_runs() -> None:
    parts, sessions = SessionParts(), Sessions()
    assert {await conversation(parts).begin(sessions.run) for _ in range(1_000)} == {"a"}
    assert all(part.early for part in sessions.asked)


async def test_a_door_that_knows_nothing_comes_to_the_same_part_and_nothing_is_early_there() -> None:
    sessions = Sessions("a", part_name("a", 2))
    parts = SessionParts()
    for known in (parts, parts, SessionParts()):
        assert await conversation(known).begin(sessions.run) == part_name("a", 3)
    walked = ["a", part_name("a", 2), part_name("a", 3)]
    assert sessions.names == [*walked, walked[-1], *walked]
    assert [part.early for part in sessions.asked] == [True, False, False, False, True, False, False]


async def test_what_is_known_of_full_parts_is_asked_again_in_time_however_often_it_was_used() -> None:
    clock = Clock()
    parts, sessions = SessionParts(now_s=clock), Sessions("a")
    for _ in range(4):
        await conversation(parts).begin(sessions.run)
        sessions.full.add(part_name("a", len(sessions.full) + 1))
        clock.time_s += KNOWN_S / 4
    sessions.asked.clear()
    await conversation(parts).begin(sessions.run)
    assert sessions.names[0] == "a"
    clock.time_s -= 1.0
    await conversation(parts).begin(sessions.run)
    assert sessions.names.count("a") == 2, "a clock that was set back says nothing about how long it is"


async def test_what_was_not_used_for_longest_is_forgotten() -> None:
    parts, sessions = SessionParts(sessions_max=1), Sessions("a", "b")
    for named in ("a", "b", "a"):
        await conversation(parts, named).begin(sessions.run)
    assert sessions.names.count("a") == 2


async def test_a_run_with_an_id_of_its_own_is_looked_for_in_every_part() -> None:
    parts, sessions = SessionParts(), Sessions("a")
    for _ in range(2):
        await conversation(parts, from_first=True).begin(sessions.run)
    assert sessions.names == ["a", part_name("a", 2)] * 2


async def test_too_many_runs_at_a_time_are_waited_for_in_the_same_part() -> None:
    sessions = Sessions("a", reason=RUNS_LIVE, times=2)
    assert await conversation(SessionParts()).begin(sessions.run, patience_s=5) == "a"
    assert sessions.names == ["a"] * 3
    with pytest.raises(Refused):
        await conversation(SessionParts()).begin(Sessions("a", reason=RUNS_LIVE).run)


async def test_a_run_of_its_own_has_no_session() -> None:
    assert await conversation(SessionParts(), None).begin(Sessions().run) is None


async def test_a_part_that_somebody_names_is_that_session_and_nothing_is_early_there() -> None:
    named = part_name("a", 2)
    sessions = Sessions(named)
    with pytest.raises(Refused):
        await conversation(SessionParts(), named).begin(sessions.run)
    assert sessions.asked == [Part(named, early=False)]


async def test_a_session_whose_parts_are_all_full_says_so() -> None:
    sessions = Sessions(*(part_name("a", number) for number in range(1, 2 * PARTS_TRIED)))
    with pytest.raises(SessionFull, match="50 parts of session a are full"):
        await conversation(SessionParts()).begin(sessions.run)
    assert len(sessions.asked) == PARTS_TRIED


def test_no_two_conversations_share_a_part() -> None:
    long = "s" * 126
    names = ("chat", "chat.2", "chat+part2", "s" * 128, f"{long}xy", f"{long}yx")
    found = [part_name(name, number) for name in names for number in (1, 2, 3, 1_000_000)]
    assert len(set(found)) == len(found)
    assert all(is_name(name) for name in found)
    assert [is_part(name) for name in found] == [False, True, True, True] * len(names)
