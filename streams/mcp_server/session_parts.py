"""Sessions of connections that go on for days: the orchestrator remembers every run of a session."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from pml.schemas.identifiers import is_name

# A session holds 1,000 runs, and is slower to decide about the more there are.
RUNS_MAX = 250
SESSIONS_MAX = 10_000


@dataclass(slots=True)
class _Part:
    number: int = 1
    runs: int = 0


class SessionParts:
    """Which part of a session a new run begins in: `ses_1`, after 250 runs `ses_1.2`, and so on.

    What was run early in one part is not served in another one.
    """

    def __init__(self, runs_max: int = RUNS_MAX, sessions_max: int = SESSIONS_MAX) -> None:
        self._runs_max, self._sessions_max = runs_max, sessions_max
        self._parts: OrderedDict[tuple[str, str], _Part] = OrderedDict()

    def next_run(self, tenant: str, session_id: str) -> str:
        """The session of one more run."""
        part = self._part(tenant, session_id)
        if part.runs >= self._runs_max:
            part.number, part.runs = part.number + 1, 0
        part.runs += 1
        return part_name(session_id, part.number)

    def full(self, tenant: str, session_id: str, refused: str) -> None:
        """The part of this name takes no more runs, also those of other processes or of earlier days."""
        part = self._part(tenant, session_id)
        if part_name(session_id, part.number) == refused:
            part.runs = self._runs_max

    def _part(self, tenant: str, session_id: str) -> _Part:
        part = self._parts.setdefault((tenant, session_id), _Part())
        self._parts.move_to_end((tenant, session_id))
        if len(self._parts) > self._sessions_max:
            self._parts.popitem(last=False)
        return part


def part_name(session_id: str, number: int) -> str:
    """The session of a part; a name that has no room for a number keeps its beginning."""
    if number == 1:
        return session_id
    end = f".{number}"
    return f"{session_id}{end}" if is_name(f"{session_id}{end}") else f"{session_id[: -len(end)]}{end}"
