"""The records of one partition that are not in the store yet, and where their batches are cut."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

_PLAN = re.compile(r"end=(\d{1,19})")


@dataclass(frozen=True, slots=True)
class Limits:
    """When a batch is full."""

    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Batch:
    """The records of the offsets from `first` up to `end` (not included)."""

    partition: int
    first: int
    end: int
    records: tuple[Any, ...]

    @property
    def token(self) -> str:
        """What the store knows a repeated batch by (DESIGN §2, rule 8)."""
        return f"{self.partition}-{self.first}-{self.end}"


@dataclass(slots=True)
class Buffer:
    """What waits. A batch up to `planned` may be in the store already: it is cut there again."""

    partition: int
    first: int
    limits: Limits
    planned: int | None = None
    size_bytes: int = 0
    since_s: float = 0.0
    records: deque[Any] = field(default_factory=deque)

    @property
    def end(self) -> int:
        """The offset after the last record that waits."""
        return self.records[-1].offset + 1 if self.records else self.first

    @property
    def full(self) -> bool:
        """Whether no more should be read until a batch is gone."""
        if self.planned is not None:
            return self.end >= self.planned
        return len(self.records) >= self.limits.rows or self.size_bytes >= self.limits.size_bytes

    def take(self, records: Iterable[Any], now_s: float) -> None:
        """Add what was read; what lies before the end was read before a seek and is passed over."""
        for record in records:
            if record.offset >= self.end:
                self.since_s = self.since_s if self.records else now_s
                self.records.append(record)
                self.size_bytes += weight(record)

    def due(self, now_s: float, wait_s: float) -> bool:
        """Whether a batch is to be cut now: it is full, or its first record has waited long enough."""
        if not self.records:
            return False
        return self.full or (self.planned is None and now_s - self.since_s >= wait_s)

    def cut(self) -> Batch:
        """The next batch. Cut again before `done`, it is the same one."""
        if self.planned is None:
            self.planned = self._limit()
        held = tuple(record for record in islice(self.records, self._count(self.planned)))
        return Batch(self.partition, self.first, self.planned, held)

    def done(self, batch: Batch, now_s: float) -> None:
        """Forget a batch that is stored and committed."""
        for _ in batch.records:
            self.size_bytes -= weight(self.records.popleft())
        self.first, self.planned, self.since_s = batch.end, None, now_s

    def _limit(self) -> int:
        size = 0
        for count, record in enumerate(self.records):
            size += weight(record)
            if count and (count == self.limits.rows or size > self.limits.size_bytes):
                return int(record.offset)
        return self.end

    def _count(self, end: int) -> int:
        return sum(record.offset < end for record in self.records)


def weight(record: Any) -> int:
    """The bytes that a record holds, about."""
    return len(record.key or b"") + len(record.value or b"")


def plan_metadata(end: int) -> str:
    """The metadata of a group offset while the batch up to `end` is being inserted."""
    return f"end={end}"


def planned_end(offset: int, metadata: str) -> int | None:
    """The end of a batch that a crash left between plan and commit; None where there is none."""
    match = _PLAN.fullmatch(metadata)
    end = int(match[1]) if match else offset
    return end if end > offset else None
