"""One replay: a source read once, every projection folded from it, compared where that was asked for."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pml.schemas.errors import PMLError
from pml.streams.replay.accounts import AccountsReplay
from pml.streams.replay.derived import DerivedReplay
from pml.streams.replay.lessons import LessonsReplay
from pml.streams.replay.report import FOLDABLE, Comparison
from pml.streams.replay.rows import RowsReplay
from pml.streams.replay.sessions import SessionsReplay
from pml.streams.replay.sources import Batches, LogEntry, Unreadable

# So many objects come to be before the collector looks for cycles: an event makes hundreds, and no cycle.
COLLECTED_AFTER = 200_000


@dataclass(slots=True)
class ReplayReport:
    """What was read and what came of it.

    `offsets` are the first and the last of each partition; `resumed` counts partitions that were done before.
    """

    events: int = 0
    offsets: dict[int, list[int]] = field(default_factory=dict)
    comparisons: list[Comparison] = field(default_factory=list)
    resumed: int = 0

    @property
    def same(self) -> bool:
        """Whether nothing that was compared differs."""
        return not any(comparison.differences for comparison in self.comparisons)

    def as_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            "events": self.events,
            "offsets": self.offsets,
            "same": self.same,
            "partitions_done_before": self.resumed,
            "projections": [comparison.as_dict() for comparison in self.comparisons],
        }


@dataclass(frozen=True, slots=True)
class Folds:
    """What is folded: sessions always, the others where there is something to compare them with."""

    sessions: SessionsReplay
    accounts: AccountsReplay | None = None
    rows: RowsReplay | None = None
    derived: DerivedReplay | None = None
    lessons: LessonsReplay | None = None

    def take(self, entry: LogEntry) -> bool:
        """Fold one event; whether there are enough rows to `compare`."""
        self.sessions.fold(entry)
        if self.accounts is not None:
            self.accounts.fold(entry)
        if self.lessons is not None:
            self.lessons.fold(entry)
        return self.rows is not None and self.rows.fold(entry)

    async def compare(self, partition: int) -> None:
        """Compare the rows of a partition that were folded.

        Raises:
            StoreUnavailable, QueryError
        """
        assert self.rows is not None
        await asyncio.to_thread(self.rows.compare, partition)

    async def finish(self, spans: Mapping[int, Sequence[int]]) -> list[Comparison]:
        """What came of it; `spans` are the first and last offset of each partition that was read."""
        last_offsets = {partition: last for partition, (_, last) in spans.items()}
        self.sessions.finish()
        found = [self.sessions.comparison]
        if self.accounts is not None:
            self.accounts.finish(last_offsets)
            found.append(self.accounts.comparison)
        if self.rows is not None:
            await asyncio.to_thread(self.rows.finish, last_offsets)
            found.append(self.rows.comparison)
        if self.derived is not None:
            await asyncio.to_thread(self.derived.finish, spans)
            found.append(self.derived.comparison)
        return found


async def replay(source: Batches, folds: Folds, session: tuple[str, str] | None = None) -> ReplayReport:
    """Read the source once and fold every projection; `session` (tenant, session) takes only its events.

    What is no event, or stands where none can, is a difference of the projection `log`; it is passed over.

    Raises:
        BrokerUnavailable, StoreUnavailable, LogCorrupted, UndecodableRecord: as the source and the store do.
    """
    log = Comparison("log")
    report = ReplayReport(comparisons=[log])
    with _rare_collections():
        async for entries in source:
            for entry in entries:
                if session is not None and entry.session not in (session, None):
                    continue
                if isinstance(entry, Unreadable):
                    log.differs(entry.place, "event", "an event", entry.reason)
                elif _comes_next(report, log, entry) and _taken(folds, log, entry):
                    await _compared(folds, log, entry)
    log.folded = log.compared = report.events
    report.comparisons += await folds.finish(report.offsets)
    return report


def _comes_next(report: ReplayReport, log: Comparison, entry: LogEntry) -> bool:
    """Count an event that lies behind those of its partition that were read; another one is a difference, and
    is not folded: a state made in another order proves nothing."""
    offset = entry.event.offset
    span = report.offsets.get(entry.partition)
    last = -1 if span is None else span[1]
    if offset <= last:
        log.differs(entry.place, "offset", f"one after {last}", str(offset))
        return False
    report.events += 1
    if span is None:
        report.offsets[entry.partition] = [offset, offset]
    else:
        span[1] = offset
    return True


def _taken(folds: Folds, log: Comparison, entry: LogEntry) -> bool:
    """Fold one event; what somebody wrote into it that nothing can be made of is a difference. Whether there
    are enough rows to compare.

    Raises:
        PMLError: what it is compared with cannot be read.
    """
    try:
        return folds.take(entry)
    except Exception as error:
        _differs(log, entry, error)
        return False


async def _compared(folds: Folds, log: Comparison, entry: LogEntry) -> None:
    """Compare the rows up to this event; what nothing can be made of is a difference here too.

    Raises:
        PMLError: what they are compared with cannot be read.
    """
    try:
        await folds.compare(entry.partition)
    except Exception as error:
        _differs(log, entry, error)


def _differs(log: Comparison, entry: LogEntry, error: Exception) -> None:
    if isinstance(error, PMLError):
        raise error
    log.differs(entry.place, "event", FOLDABLE, type(error).__name__)


def merged(reports: Iterable[ReplayReport]) -> ReplayReport:
    """The report of the whole log from those of its parts."""
    whole = ReplayReport()
    by_projection: dict[str, Comparison] = {}
    for report in reports:
        whole.events += report.events
        whole.offsets |= report.offsets
        for comparison in report.comparisons:
            name = comparison.projection
            by_projection.setdefault(name, Comparison(name)).take(comparison)
    whole.comparisons = [*by_projection.values()]
    return whole


@contextmanager
def _rare_collections() -> Iterator[None]:
    """A tenth of a replay would be spent on looking for garbage in the states that it keeps."""
    before = gc.get_threshold()
    gc.set_threshold(COLLECTED_AFTER, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
