"""A broker in memory: partitions of records, a clock that can stand or jump, retention, group commits."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Place = tuple[str, int]
Headers = tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it lies. Its timestamp is LogAppendTime, in milliseconds since 1970."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """A record that is about to be appended."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()


@dataclass
class Lane:
    """One partition: what was ever appended, and where retention has come to."""

    records: list[Record] = field(default_factory=list)
    first: int = 0
    last_ms: int = 0

    @property
    def end(self) -> int:
        """The offset of the next record."""
        return len(self.records)


class Broker:
    """All topics.

    Args:
        clock: the broker's wall clock in milliseconds; an append takes its time from it.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._lanes: dict[Place, Lane] = defaultdict(Lane)
        self._waiting: dict[Place, list[asyncio.Future[None]]] = defaultdict(list)
        self.committed: dict[tuple[str, str, int], int] = {}
        self.on_append: Callable[[Sequence[Record]], None] = lambda records: None

    def lane(self, place: Place) -> Lane:
        """One partition."""
        return self._lanes[place]

    def records(self, topic: str) -> list[Record]:
        """Everything that was ever appended to a topic, partition by partition."""
        places = sorted(place for place in self._lanes if place[0] == topic)
        return [record for place in places for record in self._lanes[place].records]

    def append(self, place: Place, drafts: Sequence[Draft]) -> int:
        """One batch lands, whole; its first offset."""
        lane = self._lanes[place]
        base, now_ms = lane.end, self._clock()
        added = [
            Record(*place, base + index, now_ms, draft.key, draft.value, draft.headers)
            for index, draft in enumerate(drafts)
        ]
        lane.records += added
        for waiting in self._waiting.pop(place, ()):
            if not waiting.done():
                waiting.set_result(None)
        self.on_append(added)
        return base

    def expire(self, place: Place, first: int) -> None:
        """Records before this offset are past their retention."""
        lane = self._lanes[place]
        lane.first = max(lane.first, min(first, lane.end))

    def moved(self, places: Sequence[Place]) -> asyncio.Future[None]:
        """Done at the next append to one of these partitions."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        for place in places:
            self._waiting[place] = [item for item in self._waiting[place] if not item.done()]
            self._waiting[place].append(waiting)
        return waiting
