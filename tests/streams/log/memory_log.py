"""A partition of the log in memory, and a core of one number, for what a broker seldom does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace

from pml.schemas.codec import encode
from pml.schemas.events import Cause, CommandAttached, Event
from pml.schemas.identifiers import session_key
from pml.streams.log.append import InDoubt, Outgoing, Overtaken
from pml.streams.log.reader import event_headers


@dataclass(frozen=True)
class Lying:
    """A record where it came to lie."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]


class MemoryLog:
    """The port of recovery over a list. `before_append` may append first, or raise."""

    def __init__(self) -> None:
        self.records: list[Lying] = []
        self.read_from: list[int] = []
        self.before_append: Callable[[], None] = lambda: None

    async def end(self) -> int:
        return len(self.records)

    async def append(self, base: int, records: Sequence[Outgoing]) -> None:
        self.before_append()
        if self.land(records) != base:
            raise Overtaken("landed elsewhere")

    def land(self, records: Sequence[Outgoing]) -> int:
        """Records come to lie at the end, whatever they were written for."""
        base = len(self.records)
        self.records += [
            Lying(base + index, record.key, record.value, tuple(record.headers))
            for index, record in enumerate(records)
        ]
        return base

    async def read(self, start: int, end: int) -> AsyncIterator[Sequence[Lying]]:
        self.read_from.append(start)
        for position in range(start, end, 3):
            yield self.records[position : min(position + 3, end)]


class LostAcknowledgement(InDoubt):
    """The batch landed or not; the writer is not told."""


@dataclass(frozen=True)
class Sum:
    """A session that remembers the ids of its events, so that none may be missed or taken twice."""

    epoch: int
    seq: int
    last_offset: int
    total: int


def evolve(state: Sum | None, event: Event) -> Sum:
    if event.seq == 0:
        return Sum(event.epoch, 0, event.offset, event.offset)
    assert state is not None
    assert (state.epoch, state.seq + 1) == (event.epoch, event.seq)
    return replace(state, seq=event.seq, last_offset=event.offset, total=state.total * 31 + event.offset)


def event(session: str, epoch: int, seq: int, offset: int, cause: int | None = None) -> Event:
    return Event(
        id=f"local/{session}:{epoch}:{seq}",
        type="command.attached",
        tenant="local",
        session_id=session,
        epoch=epoch,
        seq=seq,
        offset=offset,
        occurred_at="2026-11-22T10:00:00.000000Z",
        cause=None if cause is None else Cause(topic="pml.commands", partition=0, offset=cause),
        data=CommandAttached(status="running"),
    )


def outgoing(message: Event) -> Outgoing:
    return Outgoing(session_key(message.tenant, message.session_id), encode(message), event_headers(message))
