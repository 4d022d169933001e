"""A replay by partitions: each is read, folded and compared for itself, in whatever process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from pml.clickhouse.client import Store
from pml.clickhouse.derived import View, derived_tables
from pml.clickhouse.expiry import expired_before, oldest_after_expired
from pml.clickhouse.replay import stored_counts, stored_rows
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.connection import store_url
from pml.streams.log.tail import OffsetGone
from pml.streams.projections.thresholds.table import ROLE, subject_of
from pml.streams.replay.accounts import AccountsReplay
from pml.streams.replay.derived import DerivedReplay
from pml.streams.replay.learned import LearnedReplay
from pml.streams.replay.lessons import LessonsReplay, Marks, marks_of
from pml.streams.replay.live import committed, live_learned, live_metrics, live_sessions, of_partition
from pml.streams.replay.play import Folds, ReplayReport, replay
from pml.streams.replay.report import Comparison
from pml.streams.replay.rows import RowsReplay
from pml.streams.replay.selection import CLICKHOUSE, KAFKA, Selection
from pml.streams.replay.sessions import SessionsReplay
from pml.streams.replay.sources import (
    Batches,
    OnRead,
    read_log,
    read_records,
    read_store,
    topic_spans,
    within,
)
from pml.streams.settings import Settings


@dataclass(frozen=True, slots=True)
class Live:
    """What the running roles hold, of all partitions or of one.

    `sessions` are control records by their keys, `metrics` values by partition, `committed` and `taught`
    the offsets that sink and thresholds take next by partition, `learned` rows by their keys, `lessons` the
    offsets that were read of each partition of lessons, `told` their marks by the partition of the log that
    they are from, `derived` the views of ClickHouse by the tables they fill.
    """

    sessions: Mapping[bytes, bytes] = field(default_factory=dict)
    metrics: Mapping[int, bytes] = field(default_factory=dict)
    committed: Mapping[int, int] = field(default_factory=dict)
    taught: Mapping[int, int] = field(default_factory=dict)
    learned: Mapping[bytes, bytes] = field(default_factory=dict)
    lessons: Mapping[int, range] = field(default_factory=dict)
    told: Mapping[int, bytes] = field(default_factory=dict)
    derived: Mapping[str, tuple[View, ...]] = field(default_factory=dict)

    def of(self, partition: int) -> Live:
        """What is held of one partition, and where the lessons of all lie."""
        return replace(
            self,
            sessions=of_partition(self.sessions, partition),
            metrics={number: value for number, value in self.metrics.items() if number == partition},
            learned={key: value for key, value in self.learned.items() if subject_of(key)[0] == partition},
            told={number: marks for number, marks in self.told.items() if number == partition},
        )


@dataclass(frozen=True, slots=True)
class Part:
    """One partition of a source: which offsets are read of the log, about how many records, what is live."""

    partition: int
    offsets: range
    records: int
    live: Live


async def read_live(settings: Settings, selection: Selection) -> Live:
    """What the selection is compared with; nothing where it is not.

    Raises:
        BrokerUnavailable: no broker answers.
    """
    if not selection.verify:
        return Live()
    live = Live(
        sessions=await live_sessions(settings, selection.session),
        committed=await committed(settings, "sink"),
        derived=await asyncio.to_thread(_derived, settings),
    )
    if not selection.has_totals:
        return live
    live = replace(live, metrics=await live_metrics(settings))
    if selection.source != KAFKA:
        return live
    taught = await read_lessons(settings)
    return replace(
        live, learned=taught.learned, taught=taught.taught, lessons=taught.lessons, told=taught.told
    )


async def read_lessons(settings: Settings) -> Live:
    """What was learned, where the lessons lie, and their marks: each is read once for all parts.

    Raises:
        BrokerUnavailable: no broker answers.
    """
    # The rows before the lessons, and these before the log: what is in the one is in the next.
    learned, taught = await live_learned(settings), await committed(settings, ROLE)
    spans = await topic_spans(settings, settings.topics.lessons, range(SESSION_PARTITIONS))
    read, told = {}, Marks()
    for number, offsets in spans.items():
        read[number], marks = await _told(settings, number, offsets)
        told.add(marks)
    return Live(learned=learned, taught=taught, lessons=read, told=told.by_partition())


async def _told(settings: Settings, partition: int, offsets: range) -> tuple[range, Mapping[int, bytes]]:
    """The offsets of lessons that were there to be read, and the marks of these lessons.

    What expires while it is read leaves a hole, so it is read again from what is first then: as lessons that
    were lost before.
    """
    topic, log = settings.topics.lessons, settings.topics.events
    while True:
        try:
            marks = Marks()
            async for records in read_records(settings, topic, partition, offsets):
                marks.add(marks_of(log, partition, (each.value for each in records)))
        except OffsetGone:
            held = (await topic_spans(settings, topic, (partition,)))[partition]
            offsets = range(max(held.start, offsets.start + 1), offsets.stop)
        else:
            return offsets, marks.by_partition()


async def parts_of(settings: Settings, selection: Selection) -> list[Part]:
    """The parts of a selection of the log or the store.

    Raises:
        BrokerUnavailable, StoreUnavailable: what is read does not answer.
    """
    # The live tables first: whatever they hold then is in the log that is read after them.
    live = await read_live(settings, selection)
    spans, counts = await _sizes(settings, selection)
    return [
        Part(number, spans.get(number, range(0)), counts.get(number, 0), live.of(number))
        for number in selection.partitions
    ]


async def replay_part(settings: Settings, selection: Selection, part: Part, on_read: OnRead) -> ReplayReport:
    """Read, fold and compare one part.

    Raises:
        BrokerUnavailable, StoreUnavailable, LogCorrupted: as the source and the store do.
    """
    with ExitStack() as open_until_end:
        store = _store(settings, selection, open_until_end)
        begins = await asyncio.to_thread(_begins, selection, part, store)
        ends = {part.partition: part.offsets.stop} if selection.to_the_end else {}
        folds = folds_of(selection, part.live, store, begins, ends)
        if part.live.lessons:
            taught = part.live.taught.get(part.partition, 0)
            folds = replace(folds, lessons=LessonsReplay(settings.topics.events, part.partition, taught))
        source = _source(settings, selection, part, store, on_read)
        read = within(source, selection.since_ms, selection.until_ms, part.partition)
        report = await replay(read, folds, selection.session)
        if folds.lessons is not None:
            report.comparisons += await lessons_compared(settings, part.partition, part.live, folds.lessons)
        return report


async def lessons_compared(
    settings: Settings, partition: int, live: Live, taught: LessonsReplay
) -> list[Comparison]:
    """What events of a partition teach beside all lessons, and what was learned of those of this partition.

    Raises:
        BrokerUnavailable: no broker answers.
        LogCorrupted: a lesson or a row of a newer release.
    """
    lost = frozenset(number for number, offsets in live.lessons.items() if offsets.start > 0)
    taught.look(live.told.get(partition, b""))
    taught.finish(lost)
    learned = LearnedReplay(partition, live.learned)
    read = await _learned_of(settings, partition, live, learned)
    learned.finish(lost=partition in lost or not read)
    return [taught.comparison, learned.comparison]


async def _learned_of(settings: Settings, partition: int, live: Live, learned: LearnedReplay) -> bool:
    """Fold the lessons of a partition; whether none has expired since where they lie was read."""
    offsets = live.lessons.get(partition, range(0))
    try:
        async for records in read_records(settings, settings.topics.lessons, partition, offsets):
            learned.fold(records)
    except OffsetGone:
        return False
    return True


def folds_of(
    selection: Selection,
    live: Live,
    store: Store | None,
    begins: int = 0,
    ends: Mapping[int, int] | None = None,
) -> Folds:
    """What a selection is folded into; rows are compared where there is a `store` that is not its source.

    The source `begins` with that offset, where what lay before it has expired there. Where it is all of the
    log, `ends` says where each partition ended after what is live was read.
    """
    sessions = SessionsReplay(live.sessions, whole=selection.whole, begins=begins, ends=ends)
    counted = selection.has_totals and (selection.verify or live.metrics)
    accounts = AccountsReplay(live.metrics, lost=begins > 0, ends=ends) if counted else None
    if store is None or not selection.verify:
        return Folds(sessions, accounts)
    derived = DerivedReplay(store, live.derived, live.committed, selection.session)
    if selection.source == CLICKHOUSE:
        return Folds(sessions, accounts, derived=derived)
    rows = RowsReplay(
        lambda number, first, last: stored_rows(store, number, first, last, selection.session),
        live.committed,
        lambda: expired_before(store),
        whole=selection.whole,
        ends=ends,
    )
    return Folds(sessions, accounts, rows, derived)


def _begins(selection: Selection, part: Part, store: Store | None) -> int:
    """The first offset that is left in a store that is read, where those before it have expired."""
    if selection.source != CLICKHOUSE:
        return 0
    assert store is not None
    return oldest_after_expired(store, part.partition)


def _store(settings: Settings, selection: Selection, stack: ExitStack) -> Store | None:
    if not selection.verify and selection.source != CLICKHOUSE:
        return None
    return stack.enter_context(Store.connect(store_url(settings), settings.clickhouse.database))


def _source(
    settings: Settings, selection: Selection, part: Part, store: Store | None, on_read: OnRead
) -> Batches:
    if selection.source == CLICKHOUSE:
        assert store is not None
        return read_store(store, part.partition, on_read)
    return read_log(settings, part.partition, part.offsets, on_read)


async def _sizes(settings: Settings, selection: Selection) -> tuple[dict[int, range], dict[int, int]]:
    """The offsets of each partition, and about how many records it has."""
    if selection.source == CLICKHOUSE:
        return {}, await asyncio.to_thread(_counts, settings)
    topic, since_ms = settings.topics.events, selection.since_ms
    spans = await topic_spans(settings, topic, selection.partitions, since_ms)
    return spans, {number: len(span) for number, span in spans.items()}


def _derived(settings: Settings) -> dict[str, tuple[View, ...]]:
    with Store.connect(store_url(settings), settings.clickhouse.database) as store:
        return derived_tables(store)


def _counts(settings: Settings) -> dict[int, int]:
    with Store.connect(store_url(settings), settings.clickhouse.database) as store:
        return stored_counts(store)
