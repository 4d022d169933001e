"""A group coordinator: who owns which partition, in which generation; slow members are thrown out."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.loop import PROCESS, Process, SimulatedLoop

Hook = Callable[[set[int]], Awaitable[Any]]


class Member:
    """One consumer of a group. Its own task beats, and follows every new generation."""

    def __init__(self, group: Group, revoked: Hook, assigned: Hook) -> None:
        self.group = group
        self._revoked, self._assigned = revoked, assigned
        self.generation = -1
        self.numbers: set[int] = set()
        self.beat_at_s = 0.0
        self._following: asyncio.Task[None] | None = None
        self._beating: asyncio.Task[None] | None = None
        process = PROCESS.get()
        assert process is not None
        self.process: Process = process

    def join(self) -> None:
        """Become a member and stay one."""
        self._beating = asyncio.ensure_future(self._beat())

    def leave(self) -> None:
        """The group goes on without us."""
        if self._beating is not None:
            self._beating.cancel()
        self.group.remove(self)

    def current(self, generation: int) -> bool:
        """Whether the group still knows this generation of us."""
        return self in self.group.members and generation == self.group.generation

    async def _beat(self) -> None:
        self.group.add(self)
        while True:
            self.beat_at_s = self.group.loop.time()
            if self not in self.group.members:
                self.group.add(self)
            if self.generation != self.group.generation:
                await self._follow()
            await asyncio.sleep(self.group.heartbeat_s)

    async def _follow(self) -> None:
        """A new generation: give back what we had, then take what we get. A newer one interrupts."""
        if self._following is not None and not self._following.done():
            self.group.counts["rebalance interrupted"] += 1
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        self.generation = self.group.generation
        before, self.numbers = self.numbers, set(self.group.assignment.get(self, ()))
        self._following = asyncio.ensure_future(self._change(before, self.numbers))
        self._following.add_done_callback(self._ended)

    async def _change(self, before: set[int], after: set[int]) -> None:
        await self._revoked(before)
        await self._assigned(after)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.group.fail(self.process, error)


@dataclass
class Group:
    """The members of one group and what is assigned to them. Partitions go round by age of membership."""

    name: str
    loop: SimulatedLoop
    numbers: tuple[int, ...]
    fail: Callable[[Process, BaseException], None]
    heartbeat_s: float = 0.5
    session_timeout_s: float = 6.0
    counts: Counter[str] = field(default_factory=Counter)
    generation: int = 0
    members: list[Member] = field(default_factory=list)
    assignment: dict[Member, list[int]] = field(default_factory=dict)
    turn: int = 0

    def member(self, revoked: Hook, assigned: Hook) -> Member:
        """Somebody who may join."""
        return Member(self, revoked, assigned)

    def add(self, member: Member) -> None:
        """A member comes, or comes back."""
        self.members.append(member)
        self.rebalance()

    def remove(self, member: Member) -> None:
        """A member leaves."""
        if member in self.members:
            self.members.remove(member)
            self.rebalance()

    def rebalance(self) -> None:
        """A new generation; who does not follow keeps believing the old one."""
        self.generation += 1
        self.counts["rebalance"] += 1
        self.assignment = {member: [] for member in self.members}
        for index, number in enumerate(self.numbers):
            if self.members:
                self.assignment[self.members[(index + self.turn) % len(self.members)]].append(number)

    def shuffle(self) -> None:
        """Another distribution, as a rolling deployment gives."""
        self.turn += 1
        self.rebalance()

    async def watch(self) -> None:
        """Throw out who was not heard of for the session's time-out."""
        while True:
            await asyncio.sleep(self.session_timeout_s / 4)
            late = self.loop.time() - self.session_timeout_s
            gone = [m for m in self.members if m.beat_at_s < late and m.beat_at_s > 0]
            if gone:
                self.members = [member for member in self.members if member not in gone]
                self.rebalance()
