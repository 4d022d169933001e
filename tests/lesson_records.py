"""Lessons and events as a consumer has them, and their fold, without a broker."""

from __future__ import annotations

from dataclasses import dataclass, field

from pml.schemas.codec import encode
from pml.schemas.events import Event, EventData
from pml.schemas.lessons import Lesson
from pml.streams.log.reader import event_headers
from pml.streams.projections.thresholds.learning import Learned, PartitionLearning


@dataclass(frozen=True)
class Held:
    """A record as a consumer has it."""

    offset: int
    value: bytes | None
    headers: list[tuple[str, bytes]] = field(default_factory=list)
    key: bytes | None = None
    topic: str = "pml.events"
    partition: int = 3


def held(lessons: list[Lesson]) -> list[Held]:
    return [Held(offset, encode(item)) for offset, item in enumerate(lessons)]


def folded(state: PartitionLearning, records: list[Held]) -> Learned:
    learned = state.fold(records)
    state.keep(learned)
    return learned


def event(offset: int, data: EventData, written_for: int | None = None, run_id: str | None = None) -> Held:
    place = offset if written_for is None else written_for
    message = Event(
        id=f"local/s:0:{offset}",
        type=data.TYPE,
        tenant="local",
        session_id="s",
        run_id=run_id,
        epoch=0,
        seq=offset,
        offset=place,
        occurred_at="2026-11-22T10:00:00.000000Z",
        data=data,
    )
    return Held(offset, encode(message), event_headers(message), b"local/s")
