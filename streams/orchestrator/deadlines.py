"""The orchestrator's clock: arms the earliest deadline of each session and publishes `deadline.reach`."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from pml.processors.workflow import Deadline, Session, deadline, deadline_command
from pml.schemas.codec import encode
from pml.streams.clock import Clock, now_ms
from pml.streams.log.append import Outgoing

# At most so many commands at once; what else is due follows when they are acknowledged.
AT_ONCE = 200
# The log's clock may be behind ours: decide ignores what comes too early, and it is sent again.
REPEAT_S = 1.0
REPEAT_MAX_S = 60.0
# Entries of deadlines that no longer stand; beyond that they are swept out.
SPARE = 1_000

Publish = Callable[[list[Outgoing]], Awaitable[None]]


@dataclass(slots=True)
class Armed:
    """A deadline that somebody waits for, and how often it was published."""

    due: Deadline
    session: Session
    sent: int = 0


class Deadlines:
    """The earliest deadline of every session of one partition. Times are milliseconds since 1970."""

    def __init__(self, publish: Publish, now_ms: Clock = now_ms) -> None:
        self._publish = publish
        self._now_ms = now_ms
        self._armed: dict[bytes, Armed] = {}
        self._heap: list[tuple[int, int, bytes, Deadline]] = []
        self._pushed = 0
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._armed)

    def arm(self, key: bytes, session: Session) -> None:
        """Wait for the earliest deadline of this session instead of what was armed before."""
        due = deadline(session)
        before = self._armed.get(key)
        if due is None:
            self._armed.pop(key, None)
        elif before is not None and before.due == due:
            before.session = session
        else:
            self._armed[key] = Armed(due, session)
            self._push(due.due_at_ms, key, due)

    def clear(self) -> None:
        """Wait for nothing."""
        self._armed.clear()
        self._heap.clear()

    async def run(self) -> None:
        """Publish what is due, for ever.

        Raises:
            InDoubt, BrokerUnavailable: publishing failed for good.
        """
        while True:
            self._changed.clear()
            due = self.take_due()
            if due:
                await self._publish(due)
                continue
            wait_s = (self._heap[0][0] - self._now_ms()) / 1000 if self._heap else None
            # Not `wait_for`: before Python 3.12 it loses a cancellation that comes with the event.
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._changed.wait()

    def take_due(self) -> list[Outgoing]:
        """The commands of what is due now, a bounded number; each is armed again for its repeat."""
        now_ms = self._now_ms()
        commands: list[Outgoing] = []
        while self._heap and self._heap[0][0] <= now_ms and len(commands) < AT_ONCE:
            _, _, key, due = heapq.heappop(self._heap)
            if not self._stands(key, due):
                continue
            armed = self._armed[key]
            repeat_s = min(REPEAT_S * 2**armed.sent, REPEAT_MAX_S)
            armed.sent += 1
            self._push(now_ms + int(repeat_s * 1000), key, due)
            commands.append(Outgoing(key, encode(deadline_command(armed.session, due))))
        return commands

    def _push(self, at_ms: int, key: bytes, due: Deadline) -> None:
        self._pushed += 1
        heapq.heappush(self._heap, (at_ms, self._pushed, key, due))
        if len(self._heap) > SPARE + 2 * len(self._armed):
            self._heap = [entry for entry in self._heap if self._stands(entry[2], entry[3])]
            heapq.heapify(self._heap)
        # Each step arms a deadline, later than those before it: `run` waits for the earliest and sleeps on.
        if self._heap[0][1] == self._pushed:
            self._changed.set()

    def _stands(self, key: bytes, due: Deadline) -> bool:
        armed = self._armed.get(key)
        return armed is not None and armed.due == due
