"""Conversations that go on for days: a session of the log remembers its runs, and is full when it has 1,000.

A conversation then goes on in sessions of other names, its parts. Each session sees its own writes only. So
that no result is served that a write in another part has made old, runs begin early in the first part alone,
and a conversation is in another part only while the first one is full: then nothing is served early there
either (`decide`). A part that is full refuses everybody for as long as it lives, whichever door asks.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeVar

from pml.processors.workflow.obedience import RUNS_LIVE, RUNS_REMEMBERED, SessionFull
from pml.schemas.errors import Refused

T = TypeVar("T")

SESSIONS_MAX = 10_000
# A gateway that was started again finds the parts that are full one by one, each in some 15 ms.
PARTS_TRIED = 50
KNOWN_S = 3_600.0
_NAME_CHARACTERS = 96
_PART = re.compile(r".+\+part[0-9]+-[0-9a-f]{16}")
_PAUSE_S = 0.05
_PAUSE_MAX_S = 1.0


@dataclass(frozen=True, slots=True)
class Part:
    """Where a run begins: the session, none where the run is its own, and whether anything may be early."""

    session_id: str | None
    early: bool = True


class SessionParts:
    """Which part of a conversation is the first one that is not known to be full.

    What is known is forgotten after a while, and the first part is asked again. Its refusal is an event, with
    which it lives on: as long as any door goes on in a later part, no first part ends and begins anew.
    """

    def __init__(self, sessions_max: int = SESSIONS_MAX, now_s: Callable[[], float] = time.time) -> None:
        self._sessions_max, self._now_s = sessions_max, now_s
        self._open: OrderedDict[tuple[str, str], tuple[int, float]] = OrderedDict()

    def first_open(self, tenant: str, session_id: str, known_s: float = KNOWN_S) -> int:
        """The number of the part to ask first; what is known for longer than `known_s` does not count."""
        number, since_s = self._open.get((tenant, session_id), (1, 0.0))
        if number > 1 and not 0 <= self._now_s() - since_s < known_s:
            del self._open[tenant, session_id]
            return 1
        return number

    def full(self, tenant: str, session_id: str, number: int) -> None:
        """This part takes no more runs. How long that is known counts from the refusal of the first one."""
        known, since_s = self._open.get((tenant, session_id), (1, self._now_s()))
        if number != known:
            return
        self._open[tenant, session_id] = number + 1, since_s
        self._open.move_to_end((tenant, session_id))
        if len(self._open) > self._sessions_max:
            self._open.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Conversation:
    """The session that somebody named; where nobody did, each run is its own.

    `known_s` is less than the time for which a session is remembered. With `from_first` the run has an id of
    its own, and is begun in no later part before the earlier ones have said that they do not have it.
    """

    parts: SessionParts
    tenant: str
    session_id: str | None
    known_s: float = KNOWN_S
    from_first: bool = False

    async def begin(self, run: Callable[[Part, float], Awaitable[T]], patience_s: float = 0.0) -> T:
        """What a run comes to, in the first part that takes it.

        Args:
            run: begins it in a part and waits for it as long as it is told.
            patience_s: how long to wait in all, also for room among the runs that go on at a time.

        Raises:
            Refused: by the session for another reason, or no part takes it.
        """
        ends_s = asyncio.get_running_loop().time() + patience_s
        number = self._first()
        for _ in range(PARTS_TRIED):
            try:
                return await _with_room(run, self._part(number), ends_s)
            except Refused as error:
                if not self._has_parts or not _is_full(error, RUNS_REMEMBERED):
                    raise
            assert self.session_id is not None
            self.parts.full(self.tenant, self.session_id, number)
            number += 1
        raise SessionFull(f"{PARTS_TRIED} parts of session {self.session_id} are full; use another one")

    @property
    def _has_parts(self) -> bool:
        """Whether it is a name of its own; a part that somebody names is that session, and ends with it."""
        return self.session_id is not None and not is_part(self.session_id)

    def _first(self) -> int:
        if self.session_id is None or self.from_first:
            return 1
        return self.parts.first_open(self.tenant, self.session_id, self.known_s)

    def _part(self, number: int) -> Part:
        if self.session_id is None:
            return Part(None)
        name = part_name(self.session_id, number)
        return Part(name, early=not is_part(name))


async def _with_room(run: Callable[[Part, float], Awaitable[T]], part: Part, ends_s: float) -> T:
    """What a run comes to; where too many go on at a time, it is sent again until one has ended.

    It does not go on in another part meanwhile: this one has room again, and would serve what is old.
    """
    now_s, pause_s = asyncio.get_running_loop().time, _PAUSE_S
    while True:
        try:
            return await run(part, max(ends_s - now_s(), 0.0))
        except Refused as error:
            if not _is_full(error, RUNS_LIVE) or now_s() + pause_s >= ends_s:
                raise
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, _PAUSE_MAX_S)


def _is_full(error: Refused, reason: str) -> bool:
    return error.code == SessionFull.code and error.details.get("reason") == reason


def part_name(session_id: str, number: int) -> str:
    """The session of a part. Its end is a hash of the whole name and the number, so that no two are one."""
    if number == 1:
        return session_id
    digest = blake2b(f"{number} {session_id}".encode(), digest_size=8).hexdigest()
    return f"{session_id[:_NAME_CHARACTERS]}+part{number}-{digest}"


def is_part(session_id: str) -> bool:
    """Whether a session is a later part of a conversation: nothing runs early there, whoever names it."""
    return _PART.fullmatch(session_id) is not None
