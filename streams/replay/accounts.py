"""The metrics again: the accounts of each partition up to the guard of its live value."""

from __future__ import annotations

from collections.abc import Mapping

from pml.processors.speculation.metrics import OBSERVED, Totals, decode_totals, encode_totals, observe
from pml.streams.replay.report import Comparison, Place, end_of_log
from pml.streams.replay.sources import LogEntry


class AccountsReplay:
    """Folds each partition as far as the live table has, and compares the encoded values.

    Args:
        live: the value of each partition in the live table.
        lost: whether the source does not have the first events any more; then nothing can be compared.
        ends: where each partition of the log ended after the live values were read; one that is further
            proves that the log has lost events. Without it, the source may be older than the value.

    Raises:
        LogCorrupted: a newer release wrote a live value.
    """

    def __init__(
        self, live: Mapping[int, bytes], *, lost: bool = False, ends: Mapping[int, int] | None = None
    ) -> None:
        self.comparison = Comparison("metrics")
        self._ends = ends or {}
        self._lost = lost
        self._live = live
        self._guards = {partition: decode_totals(value)[1] for partition, value in live.items()}
        self._totals = {partition: Totals() for partition in live}

    def fold(self, entry: LogEntry) -> None:
        """One counted event, in the order of its partition."""
        event = entry.event
        if event.type not in OBSERVED or event.offset > self._guards.get(entry.partition, -1):
            return
        self.comparison.folded += 1
        seen = observe(event.type, entry.fields["data"])
        if seen is not None:
            self._totals[entry.partition].add(seen)

    def finish(self, last_offsets: Mapping[int, int]) -> None:
        """Compare; `last_offsets` says how far each partition was read.

        A live value that is further than a source that may be older is not compared, and is reported so.
        """
        self.comparison.remark("{} partitions have no live value", len({*last_offsets} - {*self._live}))
        if self._lost:
            self.comparison.remark(
                "{} partitions are not compared: their first events have expired in the store",
                len(self._live),
            )
            return
        for partition, value in sorted(self._live.items()):
            guard = self._guards[partition]
            end = self._ends.get(partition)
            if end is not None and guard >= end:
                self.comparison.compared += 1
                place = Place(partition, guard, f"{partition}/totals")
                self.comparison.differs(place, "event", "the last one that is counted", end_of_log(end))
                continue
            if end is None and guard > last_offsets.get(partition, -1):
                self.comparison.remark(f"partition {partition}: the live table is further than the source")
                continue
            self.comparison.compared += 1
            expected = encode_totals(self._totals[partition], guard)
            if expected != value:
                self.comparison.differs(
                    Place(partition, guard, f"{partition}/totals"), "value", expected, value
                )
