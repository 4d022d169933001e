"""The rows of ClickHouse again: each counted event as the sink writes it, compared column by column."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from pml.clickhouse.rows import EVENT_COLUMNS, event_row
from pml.streams.replay.report import Comparison, Place, end_of_log, json_difference
from pml.streams.replay.sources import LogEntry

# Events of a partition that are compared with one query. Each looks at the keys of all that is stored, so
# they are few and large; the events of a chunk are in memory twice.
CHUNK_EVENTS = 2_000
OFFSET = EVENT_COLUMNS.index("log_offset")
Row = tuple[Any, ...]
StoredRows = Callable[[int, int, int], Sequence[Row]]


class RowsReplay:
    """Compares the events of each partition, chunk by chunk, with what the store has at these offsets.

    Args:
        stored: the rows of a partition between two offsets, both included, in order.
        committed: up to which offset (not included) the sink has committed each partition. What is missing
            from there on is lag, not a difference.
        expired_before: the time that events which may have expired occurred before; asked where rows are
            missing, so that what expires meanwhile is one of them.
        whole: whether the source begins with the log; else rows before its first event are not looked at.
        ends: where each partition of the log ended after `committed` was read: rows are compared up to there
            even where no event is left, and what the sink has committed beyond it the log has lost.
    """

    def __init__(
        self,
        stored: StoredRows,
        committed: Mapping[int, int],
        expired_before: Callable[[], datetime],
        *,
        whole: bool = True,
        ends: Mapping[int, int] | None = None,
    ) -> None:
        self.comparison = Comparison("clickhouse")
        self._ends = ends or {}
        self._stored = stored
        self._committed = committed
        self._expired_before = expired_before
        self._chunks: dict[int, list[LogEntry]] = defaultdict(list)
        self._after: dict[int, int] = defaultdict(lambda: -1)
        self._behind = self._expired = 0
        self._whole = whole

    def fold(self, entry: LogEntry) -> bool:
        """One counted event, in the order of its partition; whether there are enough to `compare`."""
        if not self._whole:
            self._after.setdefault(entry.partition, entry.event.offset - 1)
        if not entry.event.session_id:
            return False
        self.comparison.folded += 1
        chunk = self._chunks[entry.partition]
        chunk.append(entry)
        return len(chunk) >= CHUNK_EVENTS

    def compare(self, partition: int) -> None:
        """Compare what was folded of a partition; asks the store."""
        self._flush(partition, self._chunks[partition][-1].event.offset)

    def finish(self, last_offsets: Mapping[int, int]) -> None:
        """Compare what is left, up to the last offset that the source knows of each partition."""
        for partition in sorted({*last_offsets, *self._ends}):
            end = self._ends.get(partition, 0)
            self._flush(partition, max(last_offsets.get(partition, -1), end - 1))
        for partition, end in self._ends.items():
            self._find_lost(partition, end)
        self.comparison.remark(
            "{} events are not in the store: the sink is behind, or they are of another log", self._behind
        )
        self.comparison.remark("{} events have expired in the store", self._expired)

    def _find_lost(self, partition: int, end: int) -> None:
        """What the sink has read where the log has nothing any more: it commits what it was given."""
        last = self._committed.get(partition, 0) - 1
        if last >= end:
            self.comparison.compared += 1
            place = Place(partition, last, f"{partition}/committed")
            self.comparison.differs(place, "event", "the last one that the sink committed", end_of_log(end))

    def _flush(self, partition: int, last: int) -> None:
        first = self._after[partition] + 1
        expected = {entry.event.offset: entry for entry in self._chunks.pop(partition, [])}
        self._after[partition] = max(last, first - 1)
        if last < first:
            return
        for row in self._stored(partition, first, last):
            entry = expected.pop(row[OFFSET], None)
            if entry is None:
                key = f"{row[OFFSET + 1]}/{row[OFFSET + 2]}"
                self.comparison.differs(
                    Place(partition, row[OFFSET], key), "row", "none", "a row the log has not"
                )
            else:
                self._compare(entry, row)
        if expected:
            self._missing(expected.values())

    def _compare(self, entry: LogEntry, row: Row) -> None:
        self.comparison.compared += 1
        try:
            written = event_row(entry.partition, entry.fields)
        except Exception as error:  # whatever somebody wrote into it
            self.comparison.differs(entry.place, "event", "one that makes a row", type(error).__name__)
            return
        for column, expected, found in zip(EVENT_COLUMNS, written, row, strict=True):
            if expected != found:
                name, *values = (
                    json_difference(column, expected, found)
                    if column == "data"
                    else (column, str(expected), str(found))
                )
                self.comparison.differs(entry.place, name, *values)
                return

    def _missing(self, entries: Iterable[LogEntry]) -> None:
        before = self._expired_before()
        for entry in entries:
            if entry.event.offset >= self._committed.get(entry.partition, 0):
                self._behind += 1
            elif _occurred_before(entry, before):
                self._expired += 1
            else:
                self.comparison.compared += 1
                self.comparison.differs(entry.place, "row", "a row", "none in the store")


def _occurred_before(entry: LogEntry, moment: datetime) -> bool:
    """Whether an event may have expired; not where its time is none that PML writes."""
    try:
        return datetime.fromisoformat(entry.event.occurred_at) < moment
    except (ValueError, TypeError):
        return False
