"""What arrived for one partition and is not decided yet: both inputs in one queue, bounded by bytes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Arrival:
    """One record, what to call when it is handled (the last of a chunk), and where a hole before it began."""

    record: Any
    acknowledge: Callable[[], Any] | None = None
    hole_from: int | None = None

    @property
    def size(self) -> int:
        """Its bytes."""
        return len(self.record.value or b"") + len(self.record.key or b"")


class Inbox:
    """A queue that takes each offset once, in order, and asks for a pause when it holds too much.

    Faust drops what it fetched while the flow stood. Records that are missing between what came before and
    what comes now are noted with the next arrival, for its reader to fetch.

    Args:
        limit_bytes: above it the input is to pause, below half of it to go on.
        pause: called with True and False when that changes.
    """

    def __init__(self, limit_bytes: int, pause: Callable[[bool], None]) -> None:
        self._limit_bytes = limit_bytes
        self._pause = pause
        self._queue: deque[Arrival] = deque()
        self._positions: dict[str, int] = {}
        self._waiting = asyncio.Event()
        self._open = False
        self._paused = False
        self.size = 0

    def open(self, positions: Mapping[str, int]) -> None:
        """Empty it and take records from these offsets on."""
        self.close()
        self._positions = dict(positions)
        self._paused = False
        self._open = True

    def close(self) -> None:
        """Empty it and take nothing."""
        self._queue.clear()
        self._waiting.clear()
        self.size = 0
        self._open = False

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def positions(self) -> Mapping[str, int]:
        """The offsets that it takes next, by topic."""
        return self._positions

    def put(self, records: Sequence[Any], acknowledge: Callable[[], Any] | None = None) -> None:
        """Take a chunk of one topic; what was taken before is passed over."""
        if not self._open or not records:
            return
        topic = records[0].topic
        expected = self._positions.get(topic, 0)
        new = [record for record in records if record.offset >= expected]
        for record in new:
            hole_from = expected if record.offset > expected else None
            last = record is new[-1]
            self._add(Arrival(record, acknowledge if last else None, hole_from))
            expected = record.offset + 1
        self._positions[topic] = expected
        if new:
            self._waiting.set()
            self._check()

    async def take(self, limit: int, limit_bytes: int) -> list[Arrival]:
        """The next arrivals, at least one, at most so many records and bytes; waits until there are any."""
        await self._waiting.wait()
        taken: list[Arrival] = []
        size = 0
        while self._queue and len(taken) < limit and (not taken or size + self._queue[0].size <= limit_bytes):
            arrival = self._queue.popleft()
            taken.append(arrival)
            size += arrival.size
        self.size -= size
        if not self._queue:
            self._waiting.clear()
        self._check()
        return taken

    def _add(self, arrival: Arrival) -> None:
        self._queue.append(arrival)
        self.size += arrival.size

    def _check(self) -> None:
        pause = self.size > (self._limit_bytes // 2 if self._paused else self._limit_bytes)
        if pause != self._paused:
            self._paused = pause
            self._pause(pause)
