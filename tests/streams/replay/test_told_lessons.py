"""Which lessons a replay reads: each once for all parts, and what expires meanwhile is lost, not missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from pml.schemas.base import Coordinate
from pml.schemas.lessons import ThresholdLesson
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.log.tail import OffsetGone
from pml.streams.projections.thresholds.table import position_key
from pml.streams.replay import lessons as lessons_module
from pml.streams.replay import parts
from pml.streams.replay.lessons import LessonsReplay
from pml.streams.replay.parts import lessons_compared, read_lessons
from pml.streams.replay.sources import LogEntry
from pml.streams.settings import Settings
from tests.lesson_records import Held, held
from tests.log_writer import task_started
from tests.streams.replay.test_comparison import entries, events

PARTITION = 4
"""Of lessons, and of the log that they are from."""
MARK_BYTES = 28
TOLD = 10 + SESSION_PARTITIONS - 1
"""Ten lessons of one partition, and the first of them in each of the others."""


@dataclass
class Topic:
    """A topic of lessons whose first ones expire while they are read."""

    records: list[Held]
    starts: list[int]
    reads: Counter[int] = field(default_factory=Counter)

    async def spans(self, _: Settings, __: str, numbers: Iterable[int]) -> dict[int, range]:
        there = range(self.starts[0], len(self.records))
        return {number: there if number == PARTITION else range(0) for number in numbers}

    async def read(self, _: Settings, __: str, number: int, offsets: range) -> AsyncIterator[list[Any]]:
        self.reads[number] += 1
        yield self.records[offsets.start : offsets.start + 1]
        if number == PARTITION and len(self.starts) > 1:
            self.starts.pop(0)
            raise OffsetGone("the topic does not hold this offset")
        yield self.records[offsets.start + 1 : offsets.stop]


async def nothing(*_: Any) -> dict[Any, Any]:
    return {}


async def one_row(_: Settings) -> dict[bytes, bytes]:
    return {position_key(PARTITION): b"9"}


def topic_that_expires(monkeypatch: pytest.MonkeyPatch, *starts: int) -> Topic:
    lessons = [
        ThresholdLesson(
            subject="threshold/local/default",
            source=Coordinate(topic="pml.events", partition=PARTITION, offset=100 + number),
            at="2026-11-22T00:00:00.000000Z",
            success=True,
        )
        for number in range(10)
    ]
    topic = Topic(held([*lessons]), [*starts])
    monkeypatch.setattr(parts, "live_learned", one_row)
    monkeypatch.setattr(parts, "committed", nothing)
    monkeypatch.setattr(parts, "topic_spans", topic.spans)
    monkeypatch.setattr(parts, "read_records", topic.read)
    return topic


async def test_the_lessons_are_read_once_for_all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = topic_that_expires(monkeypatch, 0)
    settings = Settings()
    live = await read_lessons(settings)
    for number in range(SESSION_PARTITIONS):
        taught = LessonsReplay("pml.events", number, 1_000)
        await lessons_compared(settings, number, live.of(number), taught)
    # And once more by the part that learns from them.
    assert topic.reads == dict.fromkeys(range(SESSION_PARTITIONS), 2)
    assert {*live.told} == {PARTITION}


async def test_lessons_that_expire_while_they_are_read_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    topic_that_expires(monkeypatch, 0, 6)
    settings = Settings()
    live = await read_lessons(settings)
    assert live.lessons[PARTITION] == range(6, 10)
    taught = LessonsReplay("pml.events", PARTITION, 1_000)
    lessons, learned = await lessons_compared(settings, PARTITION, live.of(PARTITION), taught)
    assert (lessons.differences, learned.differences) == (0, 0)
    assert learned.compared == 0


async def test_more_lessons_than_are_kept_are_told_and_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    topic_that_expires(monkeypatch, 0)
    settings = Settings()
    for kept, differences, notes in (
        (TOLD, TOLD, []),
        (TOLD - 1, 0, ["1 partitions teach more than is compared"]),
        (3, 0, ["1 partitions teach more than is compared"]),
    ):
        monkeypatch.setattr(lessons_module, "MARKS_KEPT", kept)
        live = await read_lessons(settings)
        assert len(live.told[PARTITION]) == min(TOLD, kept + 1) * MARK_BYTES
        taught = LessonsReplay("pml.events", PARTITION, 1_000)
        # As if events had been read that far and taught nothing: no lesson has an event.
        taught.fold(event_at(1_000))
        lessons, _ = await lessons_compared(settings, PARTITION, live.of(PARTITION), taught)
        assert (lessons.differences, lessons.notes) == (differences, notes)


def event_at(offset: int) -> LogEntry:
    """An event that teaches nothing at that offset."""
    (entry,) = entries(events(task_started()))
    return entry._replace(event=entry.event.model_copy(update={"offset": offset}))


async def test_lessons_that_expire_before_they_are_learned_again_are_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = topic_that_expires(monkeypatch, 0)
    settings = Settings()
    live = await read_lessons(settings)
    topic.starts[:] = [0, 6]
    taught = LessonsReplay("pml.events", PARTITION, 1_000)
    _, learned = await lessons_compared(settings, PARTITION, live.of(PARTITION), taught)
    assert (learned.compared, learned.differences) == (0, 0)
