"""What was learned again: the rows of one partition of `pml.lessons` from its first lesson on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from pml.processors.capabilities.edge_weights import EDGES_MAX, KnownEdge
from pml.processors.capabilities.records import KnownCapability
from pml.processors.speculation.branches import BranchCounts
from pml.streams.projections.table import CHUNK_RECORDS
from pml.streams.projections.thresholds.capabilities import CAPABILITIES_MAX
from pml.streams.projections.thresholds.learning import SUBJECTS_MAX, PartitionLearning
from pml.streams.projections.thresholds.table import (
    Row,
    decode_row,
    encode_row,
    key_of,
    position_key,
    subject_of,
)
from pml.streams.replay.report import Comparison, Place


class LearnedReplay:
    """Folds the lessons of a partition as far as the live table has, and compares its rows.

    What was told last of a row depends on how many lessons were read at once, so it is no part of it.

    Args:
        partition: of the lessons.
        live: the live rows by their keys; those of other partitions are passed over.

    Raises:
        LogCorrupted: a live row is of a newer release.
    """

    def __init__(self, partition: int, live: Mapping[bytes, bytes]) -> None:
        self.comparison = Comparison("learned")
        self._partition = partition
        self.position = int(live.get(position_key(partition), b"-1"))
        own = {key: value for key, value in live.items() if subject_of(key)[0] == partition}
        self._live = {key: decode_row(value) for key, value in own.items() if subject_of(key)[1] is not None}
        self._learning = PartitionLearning()
        self._waiting: list[Any] = []

    def fold(self, records: Iterable[Any]) -> None:
        """Lessons in the order of their partition.

        Raises:
            LogCorrupted: a lesson of a newer release.
        """
        self._waiting += (record for record in records if record.offset <= self.position)
        while len(self._waiting) >= CHUNK_RECORDS:
            self._learn()

    def finish(self, *, lost: bool) -> None:
        """Compare; where the first lessons are `lost` nothing can be."""
        while self._waiting:
            self._learn()
        if lost:
            self.comparison.remark("{} rows rest on lessons that have expired", len(self._live))
            return
        if is_full(self._live.values()):
            self.comparison.remark("{} partitions had to forget, which depends on how they were read")
            return
        expected = {key_of(self._partition, name): row for name, row in self._learning.rows.items()}
        for key in sorted({*expected, *self._live}):
            if is_ahead(self._live.get(key), expected.get(key)):
                self.comparison.remark("{} rows were written while they were read")
                continue
            self.comparison.compared += 1
            one, other = (_told(rows.get(key)) for rows in (expected, self._live))
            if one != other:
                place = Place(self._partition, self.position, key.decode(errors="replace"))
                self.comparison.differs(place, "row", one, other)

    def _learn(self) -> None:
        chunk, self._waiting = self._waiting[:CHUNK_RECORDS], self._waiting[CHUNK_RECORDS:]
        self.comparison.folded += len(chunk)
        self._learning.keep(self._learning.fold(chunk))


def is_ahead(live: Row | None, expected: Row | None) -> bool:
    """Whether a live row has lessons behind the position that was read: rows are written before that is."""
    if live is None:
        return False
    guard = {} if expected is None else expected.guard
    ahead = [live.guard.get(partition, -1) - offset for partition, offset in guard.items()]
    return min(ahead, default=0) >= 0 and dict(live.guard) != dict(guard)


def is_full(rows: Iterable[Row]) -> bool:
    """Whether some were forgotten, or soon are."""
    kinds = Counter(type(row.learned) for row in rows)
    capabilities, edges = kinds.pop(KnownCapability, 0), kinds.pop(KnownEdge, 0)
    return capabilities >= CAPABILITIES_MAX or edges >= EDGES_MAX or kinds.total() >= SUBJECTS_MAX


def _told(row: Row | None) -> bytes:
    """A row as it is stored, without what was told of it last."""
    if row is None:
        return b"none"
    learned = row.learned
    if isinstance(learned, BranchCounts):
        learned = replace(learned, told={})
    elif isinstance(learned, KnownEdge):
        learned = replace(learned, told_weight=0.0, told_runs=0, told_fields=0)
    elif isinstance(learned, KnownCapability):
        learned = replace(learned, told_runs=0)
    return encode_row(Row(learned, dict(sorted(row.guard.items())), row.at))
