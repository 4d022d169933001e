"""Taking a partition over and catching up with its log (DESIGN §2, rules 3 and 4).

Plain functions over a small port, so that a simulator can drive them through what a broker seldom does.
States are a cache of the log: what a table kept is trusted only where its term says that no later owner
can have gone past it; everything else is folded again from the log.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from pml.schemas.codec import encode
from pml.schemas.errors import BrokerUnavailable, LogCorrupted
from pml.schemas.events import Event, PartitionTaken
from pml.schemas.times import to_rfc3339
from pml.streams.log.append import InDoubt, Outgoing, Overtaken
from pml.streams.log.reader import LogRecord, counted, counted_event, event_headers

# Two owners that alternate settle within a few; more means that a third keeps writing.
TAKE_ATTEMPTS = 20


class State(Protocol):
    """What recovery needs to know of a session's state."""

    @property
    def epoch(self) -> int: ...
    @property
    def seq(self) -> int: ...
    @property
    def last_offset(self) -> int: ...


S = TypeVar("S", bound=State)
Evolve = Callable[[S | None, Event], S]


class PartitionLog(Protocol):
    """The port: one partition of the log."""

    async def end(self) -> int:
        """The offset that the next record will get."""

    async def append(self, base: int, records: Sequence[Outgoing]) -> None:
        """Append by rules 1 and 3; raises Overtaken or InDoubt."""

    def read(self, start: int, end: int) -> AsyncIterator[Sequence[LogRecord]]:
        """All records from `start` up to `end`, void ones too, in order."""


@dataclass(frozen=True, slots=True)
class Marker:
    """How far a partition was folded when its states were last written, and by which term."""

    folded: int = 0
    term: int = -1
    causes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stored:
    """One state as the table kept it. `data` is the core's record of it."""

    term: int
    epoch: int
    last_offset: int
    last_event_ms: int
    live: bool
    data: bytes


@dataclass
class Folding(Generic[S]):
    """The sessions of one partition while its log is read.

    `sessions` holds what was decoded or changed; `rebuild` the first offsets of those that must be read
    again from there; `taken` the newest counted `partition.taken` that was read; `end` how far it got.
    """

    evolve: Evolve[S]
    load: Callable[[bytes], S | None]
    end: int
    causes: dict[str, int] = field(default_factory=dict)
    sessions: dict[bytes, S] = field(default_factory=dict)
    rebuild: dict[bytes, int] = field(default_factory=dict)
    taken: int = -1

    def state(self, key: bytes) -> S | None:
        """The state of a session as far as it is folded."""
        if key not in self.sessions:
            loaded = self.load(key)
            if loaded is None:
                return None
            self.sessions[key] = loaded
        return self.sessions[key]


def newest_term(marker: Marker, stored: Mapping[bytes, Stored]) -> int:
    """The newest term that marker and states name; -1 where nothing was ever written."""
    return max([marker.term, *(state.term for state in stored.values())])


def first_offset(marker: Marker, newest: int) -> int:
    """Where folding begins: at the marker, or before it if a newer owner wrote states.

    A state of the newest term holds everything before that term; what came after may be missing from it
    where the marker is not of that term.
    """
    return marker.folded if marker.term >= newest else min(marker.folded, newest)


def stale(stored: Mapping[bytes, Stored], newest: int) -> dict[bytes, int]:
    """The states that an overtaken owner may have written over a newer one, by the offset they began at."""
    return {key: state.epoch for key, state in stored.items() if state.term < newest}


def joins(state: State | None, event: Event) -> bool:
    """Whether the event is the next of this state, or the first of a session's life."""
    if event.seq == 0:
        return event.epoch == event.offset
    return state is not None and state.epoch == event.epoch and state.seq + 1 == event.seq


async def take(log: PartitionLog, partition: int, owner: str, now_ms: Callable[[], int]) -> int:
    """Append `partition.taken` at the end of the log, again until it counts; its offset is the term.

    Raises:
        BrokerUnavailable: it did not succeed within 20 attempts.
    """
    for _ in range(TAKE_ATTEMPTS):
        base = await log.end()
        try:
            await log.append(base, [taken_record(partition, owner, base, now_ms())])
        except (Overtaken, InDoubt):
            continue
        return base
    raise BrokerUnavailable(
        f"partition {partition} of the log could not be taken: {TAKE_ATTEMPTS} appends were overtaken or "
        "unanswered; see that one broker cluster and one installation use this topic prefix"
    )


def taken_record(partition: int, owner: str, offset: int, now_ms: int) -> Outgoing:
    """The record that begins a term."""
    event = Event(
        id=f"partition/{partition}:{offset}",
        type=PartitionTaken.TYPE,
        tenant="",
        session_id="",
        epoch=0,
        seq=0,
        offset=offset,
        occurred_at=to_rfc3339(now_ms),
        data=PartitionTaken(owner=owner),
    )
    return Outgoing(None, encode(event), event_headers(event))


async def recover(
    log: PartitionLog, folding: Folding[S], marker: Marker, stored: Mapping[bytes, Stored], end: int
) -> None:
    """The states of a partition as of `end`, from what a table kept and from the log.

    (1) fold from the marker, or before it, passing over states of older terms; (2) load the live ones
    that had no event; (3) rebuild, in one read, what was passed over or did not join.

    Raises:
        LogCorrupted: the log has a gap or cannot be read.
    """
    newest = newest_term(marker, stored)
    folding.causes = dict(marker.causes)
    folding.end = first_offset(marker, newest)
    folding.rebuild = stale(stored, newest)
    await fold(log, folding, end)
    for key, state in stored.items():
        if state.live and key not in folding.rebuild and folding.state(key) is None:
            folding.rebuild[key] = state.epoch
    await rebuild(log, folding)


async def fold(log: PartitionLog, folding: Folding[S], end: int) -> None:
    """Fold every counted event from `folding.end` up to `end`.

    What a session already holds is passed over, and so is a session that waits to be rebuilt; one whose
    event does not join its state comes to wait.

    Raises:
        LogCorrupted: an offset is missing, or an event cannot be read.
    """
    async for records in log.read(folding.end, end):
        for record in records:
            _expect(record, folding.end)
            if counted(record):
                _fold_one(folding, record)
            folding.end = record.offset + 1


async def rebuild(log: PartitionLog, folding: Folding[S]) -> None:
    """Fold the sessions that wait for it from their first events, all in one read.

    Raises:
        LogCorrupted: the events of a session have a gap, or there are none.
    """
    waiting, folding.rebuild = folding.rebuild, {}
    if not waiting:
        return
    rebuilt: dict[bytes, S] = {}
    async for records in log.read(min(waiting.values()), folding.end):
        for record in records:
            key = record.key or b""
            if record.offset >= waiting.get(key, folding.end) and counted(record):
                rebuilt[key] = _joined(folding, rebuilt.get(key), counted_event(record))
    missing = waiting.keys() - rebuilt.keys()
    if missing:
        raise LogCorrupted(
            f"{len(missing)} sessions are named by the table and have no event in the log, for example "
            f"{min(missing).decode(errors='replace')}; was the log restored without its changelog?"
        )
    folding.sessions |= rebuilt


def _fold_one(folding: Folding[S], record: LogRecord) -> None:
    event = counted_event(record)
    if event.cause is not None:
        highest = folding.causes.get(event.cause.topic, -1)
        folding.causes[event.cause.topic] = max(highest, event.cause.offset)
    if event.type == PartitionTaken.TYPE:
        folding.taken = event.offset
        return
    key = record.key or b""
    if key in folding.rebuild:
        return
    state = folding.state(key)
    if state is not None and event.offset <= state.last_offset:
        return
    if joins(state, event):
        folding.sessions[key] = folding.evolve(state, event)
    else:
        folding.sessions.pop(key, None)
        folding.rebuild[key] = event.epoch


def _joined(folding: Folding[S], state: S | None, event: Event) -> S:
    if not joins(state, event):
        raise LogCorrupted(
            f"{event.id} at log offset {event.offset} does not follow the events before it: the log has a gap"
        )
    return folding.evolve(state, event)


def _expect(record: LogRecord, offset: int) -> None:
    if record.offset != offset:
        raise LogCorrupted(
            f"the log goes from offset {offset} to {record.offset}: it must be neither compacted, "
            "transactional nor cut short",
            offset=offset,
        )
