"""Which waiting calls may start now, and which speculative ones give way (DESIGN §4, condition 6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Ticket:
    """A call's place in the queue of its server."""

    server: str
    session: str
    speculative: bool


@dataclass(slots=True)
class _Lane:
    """What one server has waiting and running."""

    limit: int
    real: dict[Ticket, None] = field(default_factory=dict)
    early: dict[Ticket, None] = field(default_factory=dict)
    running: int = 0


class Admission:
    """Slots in all, of a server and of a session; a real call never waits behind a speculative one.

    At most slots − 1 of a server, and of all, hold speculative calls; where there is one slot, a
    speculative call may have it while nobody else wants it. `give_way` names the running
    speculative calls that must stop so that waiting real ones can start.
    """

    def __init__(self, total: int, session_limit: int, limits: Mapping[str, int]) -> None:
        self._total, self._session_limit = total, session_limit
        self._lanes = {server: _Lane(limit) for server, limit in limits.items()}
        self._running: dict[Ticket, None] = {}
        self._leaving: set[Ticket] = set()
        self._sessions: Counter[str] = Counter()
        self._turn = 0

    @property
    def running(self) -> int:
        """How many calls hold a slot."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """How many calls have none yet."""
        return sum(len(lane.real) + len(lane.early) for lane in self._lanes.values())

    def wait(self, ticket: Ticket) -> None:
        """Queue a call, behind those of its class."""
        lane = self._lanes[ticket.server]
        (lane.early if ticket.speculative else lane.real)[ticket] = None

    def promote(self, ticket: Ticket) -> None:
        """A speculative call became a real one: where it waits, it joins the real queue.

        One that is being refused waits nowhere, and its server may be unknown here.
        """
        if not ticket.speculative:
            return
        ticket.speculative = False
        lane = self._lanes.get(ticket.server)
        if lane is not None and ticket in lane.early:
            del lane.early[ticket]
            lane.real[ticket] = None

    def leave(self, ticket: Ticket) -> None:
        """A call has ended or is not wanted any more: it waits no longer and its slot is free."""
        lane = self._lanes[ticket.server]
        lane.real.pop(ticket, None)
        lane.early.pop(ticket, None)
        self._leaving.discard(ticket)
        if ticket in self._running:
            del self._running[ticket]
            lane.running -= 1
            self._sessions[ticket.session] -= 1
            if not self._sessions[ticket.session]:
                del self._sessions[ticket.session]

    def admit(self) -> list[Ticket]:
        """The calls that start now, real ones first; they hold their slots from here on."""
        lanes = self._lanes_in_turn()
        started = [ticket for lane in lanes for ticket in self._start(lane, lane.real)]
        return started + [ticket for lane in lanes for ticket in self._start(lane, lane.early)]

    def give_way(self) -> list[Ticket]:
        """Speculative calls that must stop for waiting real ones, the youngest first; each is named once."""
        stoppable = [t for t in reversed(self._running) if t.speculative and t not in self._leaving]
        plan = _Plan(self, stoppable)
        for ticket in self._waiting_real():
            if not plan.stoppable:
                break
            plan.make_room(ticket)
        self._leaving.update(plan.victims)
        return plan.victims

    def _lanes_in_turn(self) -> list[_Lane]:
        """Another server comes first each time, so that no server starves the others of the last slot."""
        lanes = list(self._lanes.values())
        self._turn = (self._turn + 1) % max(len(lanes), 1)
        return lanes[self._turn :] + lanes[: self._turn]

    def _start(self, lane: _Lane, queue: dict[Ticket, None]) -> Iterator[Ticket]:
        for ticket in list(queue):
            if lane.running >= lane.limit or self.running >= self._total:
                return
            if self._sessions[ticket.session] >= self._session_limit or not self._early_fits(lane, ticket):
                continue
            del queue[ticket]
            self._running[ticket] = None
            lane.running += 1
            self._sessions[ticket.session] += 1
            yield ticket

    def _early_fits(self, lane: _Lane, ticket: Ticket) -> bool:
        if not ticket.speculative:
            return True
        early = [running for running in self._running if running.speculative]
        of_server = sum(running.server == ticket.server for running in early)
        return len(early) < max(1, self._total - 1) and of_server < max(1, lane.limit - 1)

    def _waiting_real(self) -> Iterator[Ticket]:
        for lane in self._lanes.values():
            yield from lane.real

    def _free(self) -> dict[tuple[str, str], int]:
        """Free slots by what limits them, as if those that are leaving had left."""
        free = {("server", name): lane.limit - lane.running for name, lane in self._lanes.items()}
        free["total", ""] = self._total - self.running
        for ticket in self._leaving:
            free["total", ""] += 1
            free["server", ticket.server] += 1
        return free

    def _session_free(self, session: str) -> int:
        leaving = sum(ticket.session == session for ticket in self._leaving)
        return self._session_limit - self._sessions[session] + leaving


class _Plan:
    """Who gives way so that waiting real calls fit."""

    def __init__(self, admission: Admission, stoppable: list[Ticket]) -> None:
        self._admission = admission
        self._free = admission._free()
        self.stoppable = stoppable
        self.victims: list[Ticket] = []

    def make_room(self, ticket: Ticket) -> None:
        """Choose victims for one waiting call: all that it needs, or none."""
        chosen: list[Ticket] = []
        for limit in self._limits(ticket):
            if self._left(limit) + sum(limit in self._limits(victim) for victim in chosen) > 0:
                continue
            victim = next((t for t in self.stoppable if t not in chosen and limit in self._limits(t)), None)
            if victim is None:
                return
            chosen.append(victim)
        for victim in chosen:
            self.stoppable.remove(victim)
            self.victims.append(victim)
            self._add(victim, 1)
        self._add(ticket, -1)

    @staticmethod
    def _limits(ticket: Ticket) -> tuple[tuple[str, str], ...]:
        return ("session", ticket.session), ("server", ticket.server), ("total", "")

    def _left(self, limit: tuple[str, str]) -> int:
        if limit not in self._free:
            self._free[limit] = self._admission._session_free(limit[1])
        return self._free[limit]

    def _add(self, ticket: Ticket, count: int) -> None:
        for limit in self._limits(ticket):
            self._free[limit] = self._left(limit) + count
