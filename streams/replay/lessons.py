"""The lessons again: what each event teaches, compared with the records of `pml.lessons`, byte for byte."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import orjson

from pml.schemas.base import Coordinate
from pml.schemas.codec import encode
from pml.streams.connection import partition_for
from pml.streams.projections.thresholds.teaching import TEACHING, lessons_of
from pml.streams.replay.report import Comparison, Place
from pml.streams.replay.sources import LogEntry

# Each takes some 200 bytes; beyond them none is compared.
LESSONS_KEPT = 1_000_000


class LessonsReplay:
    """Collects what the events of one partition of the log teach, and looks for it among the lessons.

    Args:
        topic: that of the log, which lessons name.
        partition: of the log.
        taught: the offset that the role takes next; what later events teach may not be told yet.
    """

    def __init__(self, topic: str, partition: int, taught: int) -> None:
        self.comparison = Comparison("lessons")
        self._topic, self._partition, self._taught = topic, partition, taught
        self._last = -1
        # Of each lesson by digest: the offset of its event, and the partition that it belongs to.
        self._expected: dict[bytes, tuple[int, int]] = {}
        self._found: set[bytes] = set()
        # The first event of which each partition of lessons has one.
        self._first: dict[int, int] = {}

    def fold(self, entry: LogEntry) -> None:
        """One counted event, in order."""
        self._last = entry.event.offset
        if entry.event.type not in TEACHING or len(self._expected) > LESSONS_KEPT:
            return
        source = Coordinate(topic=self._topic, partition=self._partition, offset=entry.event.offset)
        try:
            lessons = lessons_of(entry.event.type, entry.fields, source)
        except (KeyError, TypeError, AttributeError, ValueError):
            return  # the role sends it to the dead letters
        for lesson in lessons:
            self.comparison.folded += 1
            self._expected[_digest(encode(lesson))] = (entry.event.offset, partition_for(lesson.key))

    def look(self, partition: int, values: Iterable[bytes | None]) -> None:
        """Records of a partition of `pml.lessons`; what comes from elsewhere in the log is passed over."""
        for value in values:
            source = _source(value)
            if source.get("partition") != self._partition or source.get("topic") != self._topic:
                continue
            offset = int(source["offset"])
            self._first[partition] = min(offset, self._first.get(partition, offset))
            digest = _digest(value or b"")
            if digest in self._expected:
                self._found.add(digest)
            elif offset <= self._last and len(self._expected) <= LESSONS_KEPT:
                place = Place(self._partition, offset, f"{partition}/lesson")
                self.comparison.differs(place, "lesson", "none", "a lesson that no event teaches")

    def finish(self, lost: frozenset[int]) -> None:
        """Compare; `lost` are the partitions of lessons whose first ones have expired."""
        if len(self._expected) > LESSONS_KEPT:
            self.comparison.remark("{} partitions teach more than is compared")
            return
        self.comparison.compared += len(self._found)
        for digest, (offset, partition) in self._expected.items():
            if digest in self._found or offset >= self._taught:
                continue
            if partition in lost and offset <= self._first.get(partition, self._last):
                self.comparison.remark("{} lessons may have expired")
                continue
            self.comparison.compared += 1
            place = Place(self._partition, offset, f"{partition}/lesson")
            self.comparison.differs(place, "lesson", "a lesson", "none in the topic")


def _digest(value: bytes) -> bytes:
    return hashlib.blake2b(value, digest_size=12).digest()


def _source(value: bytes | None) -> dict[str, Any]:
    """Where a lesson is from; nothing where it is none, which is for the dead letters."""
    try:
        fields = orjson.loads(value or b"")
    except orjson.JSONDecodeError:
        return {}
    found = fields.get("source") if isinstance(fields, dict) else None
    return found if isinstance(found, dict) else {}
