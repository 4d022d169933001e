"""The lessons again: what each event teaches, compared with the records of `pml.lessons`, byte for byte."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Mapping

import orjson

from pml.schemas.base import Coordinate
from pml.schemas.codec import encode
from pml.streams.connection import partition_for
from pml.streams.projections.thresholds.teaching import TEACHING, lessons_of
from pml.streams.replay.report import Comparison, Place
from pml.streams.replay.sources import LogEntry

# Each takes some 200 bytes; beyond them none is compared.
LESSONS_KEPT = 1_000_000
# What is kept of a lesson that was told: its partition, the offset of its event, its digest.
_MARK = struct.Struct("<qq12s")
# So many of each partition of the log, 28 MB; where there are more, none is compared.
MARKS_KEPT = LESSONS_KEPT
_OFFSET_MAX = (1 << 63) - 1


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
        self._told = 0
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

    def look(self, marks: bytes) -> None:
        """Those (`marks_of`) of the lessons that were told of this partition of the log."""
        self._told += len(marks) // _MARK.size
        if self._told > MARKS_KEPT:
            return
        for partition, offset, digest in _MARK.iter_unpack(marks):
            self._first[partition] = min(offset, self._first.get(partition, offset))
            if digest in self._expected:
                self._found.add(digest)
            elif offset <= self._last and len(self._expected) <= LESSONS_KEPT:
                place = Place(self._partition, offset, f"{partition}/lesson")
                self.comparison.differs(place, "lesson", "none", "a lesson that no event teaches")

    def finish(self, lost: frozenset[int]) -> None:
        """Compare; `lost` are the partitions of lessons whose first ones have expired."""
        if len(self._expected) > LESSONS_KEPT or self._told > MARKS_KEPT:
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


def marks_of(topic: str, partition: int, values: Iterable[bytes | None]) -> dict[int, bytes]:
    """Marks of records of a partition of `pml.lessons`, by the partition of the log that they are from.

    Each is read once for all parts of a replay, so what is kept of it is small. What is no lesson of this
    log (`topic`) is passed over.
    """
    found: dict[int, bytearray] = {}
    for value in values:
        if (source := _source(value, topic)) is not None:
            mark = _MARK.pack(partition, source[1], _digest(value or b""))
            found.setdefault(source[0], bytearray()).extend(mark)
    return {number: bytes(marks) for number, marks in found.items()}


class Marks:
    """Marks by the partition of the log that their lessons are from: so many of each, and one more.

    That one says that there were too many of them to compare any.
    """

    def __init__(self) -> None:
        self._held: dict[int, bytearray] = {}

    def add(self, marks: Mapping[int, bytes]) -> None:
        """Keep those for which there is room."""
        for number, some in marks.items():
            held = self._held.setdefault(number, bytearray())
            held += some[: max(0, (MARKS_KEPT + 1) * _MARK.size - len(held))]

    def by_partition(self) -> dict[int, bytes]:
        """All that are kept."""
        return {number: bytes(held) for number, held in self._held.items()}


def _digest(value: bytes) -> bytes:
    return hashlib.blake2b(value, digest_size=12).digest()


def _source(value: bytes | None, topic: str) -> tuple[int, int] | None:
    """Partition and offset of a lesson's event; None where it is no lesson, which is for the dead letters."""
    try:
        fields = orjson.loads(value or b"")
    except orjson.JSONDecodeError:
        return None
    found = fields.get("source") if isinstance(fields, dict) else None
    if not isinstance(found, dict) or found.get("topic") != topic:
        return None
    partition, offset = found.get("partition"), found.get("offset")
    if not isinstance(partition, int) or not isinstance(offset, int) or not 0 <= offset <= _OFFSET_MAX:
        return None
    return partition, offset
