"""From lessons to catalog records: the fold of one partition of `pml.lessons`.

All lessons of a subject lie in one partition, and their order there is the order of its windows. A lesson
that was sent twice, or is read again, changes nothing: each row knows the last log offset of each partition
that is in it, and of one partition of the log the lessons come in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pml.processors.capabilities.edge_weights import KnownEdge
from pml.processors.capabilities.records import KnownCapability, told
from pml.processors.learning.drift import live_record
from pml.processors.learning.live_hits import LOOKS, Guess, LiveHits, after_guess
from pml.processors.speculation.adaptation import Change, Learning, learn
from pml.processors.speculation.branches import BranchCounts, branch_parts, count_outcome
from pml.processors.speculation.distrust import Divergences, one_more
from pml.processors.speculation.thresholds import scope_of
from pml.schemas.catalog import BranchStats, CatalogData, DivergenceRecord, ThresholdRecord
from pml.schemas.codec import decode_lesson
from pml.schemas.errors import LogCorrupted, PMLError, UndecodableRecord, UnknownMessage
from pml.schemas.lessons import (
    AnyLesson,
    BranchLesson,
    DivergenceLesson,
    DraftLesson,
    GuessLesson,
    StepLesson,
    ThresholdLesson,
    UseLesson,
)
from pml.streams.dead_letters import Received
from pml.streams.projections.thresholds.capabilities import after_lesson, published, surplus, taken_names
from pml.streams.projections.thresholds.graph import Layers, forgotten_edges, stale_edges, walked
from pml.streams.projections.thresholds.table import Knowledge, Row

# Users and workflow types have no bound; the catalog, which every process holds, must have one.
SUBJECTS_MAX = 1_000


@dataclass(slots=True)
class Learned:
    """What a chunk changes: rows and catalog records, None for a subject that is forgotten."""

    position: int
    rows: dict[str, Row | None] = field(default_factory=dict)
    records: list[tuple[str, CatalogData | None]] = field(default_factory=list)
    broken: list[tuple[Received, PMLError]] = field(default_factory=list)


@dataclass(slots=True)
class PartitionLearning:
    """The rows of one partition, and the offset of the last lesson that is in them."""

    rows: dict[str, Row] = field(default_factory=dict)
    position: int = -1

    def fold(self, records: Iterable[Received]) -> Learned:
        """What these lessons change; nothing is changed before `keep`.

        Raises:
            LogCorrupted: a lesson of a newer release.
        """
        learned = Learned(self.position)
        for record in records:
            if record.offset <= learned.position:
                continue
            learned.position = record.offset
            try:
                self._take(_lesson(record), learned)
            except UndecodableRecord as error:
                learned.broken.append((record, error))
        _tell_branches(learned)
        _tell_edges(learned)
        self._forget(learned)
        _capabilities_last(learned)
        return learned

    def keep(self, learned: Learned) -> None:
        """The changes are published and written."""
        for subject, row in learned.rows.items():
            if row is None:
                self.rows.pop(subject, None)
            else:
                self.rows[subject] = row
        self.position = learned.position

    def _take(self, lesson: AnyLesson, learned: Learned) -> None:
        subject, source = lesson.subject, lesson.source
        if isinstance(lesson, UseLesson):
            learned.rows.update(walked(lesson, Layers(learned.rows, self.rows)))
        before = learned.rows.get(subject) or self.rows.get(subject)
        if before is not None and source.offset <= before.guard.get(source.partition, -1):
            return
        guard = {**(before.guard if before else {}), source.partition: source.offset}
        if isinstance(lesson, ThresholdLesson):
            state, change = learn(_learning(before), lesson.success)
            if change is not None:
                learned.records.append((subject, threshold_record(subject, state, change, lesson.at)))
            learned.rows[subject] = Row(state, guard, lesson.at)
        elif isinstance(lesson, DivergenceLesson):
            self._check(lesson, before, guard, learned)
        elif isinstance(lesson, BranchLesson):
            learned.rows[subject] = Row(count_outcome(_counts(before), lesson.outcome), guard, lesson.at)
        elif isinstance(lesson, GuessLesson):
            _count_guess(lesson, before, guard, learned)
        else:
            self._of_capability(lesson, guard, learned)

    def _check(
        self, lesson: DivergenceLesson, before: Row | None, guard: Mapping[int, int], learned: Learned
    ) -> None:
        """Most tools never differ: there is a row, and a record, from the first divergence on."""
        known = _divergences(before)
        after = Divergences(one_more(known.at, lesson.at, lesson.same))
        if before is not None or after.at:
            learned.rows[lesson.subject] = Row(after, guard, lesson.at)
        if after != known:
            tool = lesson.subject.partition("/")[2]
            learned.records.append((lesson.subject, DivergenceRecord(tool=tool, diverged_at=after.at)))

    def _of_capability(
        self, lesson: DraftLesson | UseLesson | StepLesson, guard: Mapping[int, int], learned: Learned
    ) -> None:
        """One whose draft was forgotten begins anew with the next."""
        row = learned.rows.get(lesson.subject) or self.rows.get(lesson.subject)
        before = row.learned if row and isinstance(row.learned, KnownCapability) else None
        after = after_lesson(before, lesson, lambda: taken_names(self._capabilities(learned), lesson.subject))
        if after is None:
            return
        record = published(before, after)
        if record is not None:
            learned.records.append((lesson.subject, record))
            after = told(after)
        learned.rows[lesson.subject] = Row(after, guard, lesson.at)

    def _capabilities(self, learned: Learned) -> dict[str, KnownCapability]:
        rows = self.rows | learned.rows
        return {
            subject: row.learned
            for subject, row in rows.items()
            if row is not None and isinstance(row.learned, KnownCapability)
        }

    def _forget(self, learned: Learned) -> None:
        """Too many subjects: those that were taught least recently begin anew when they come back.

        Not so a tool that differed: it may be one that nobody calls early any more for that.
        """
        for subject in surplus(self._capabilities(learned)):
            learned.rows[subject] = None
            learned.records.append((subject, None))
        for subject in forgotten_edges(Layers(learned.rows, self.rows).all()):
            learned.rows[subject] = None
            learned.records.append((subject, None))
        known = {
            subject: row
            for subject, row in Layers(learned.rows, self.rows).all()
            if not isinstance(row.learned, (KnownCapability, KnownEdge))
        }
        beyond = len(known) - SUBJECTS_MAX
        forgettable = (subject for subject, row in known.items() if not _divergences(row).at)
        for subject in sorted(forgettable, key=lambda subject: known[subject].at)[: max(0, beyond)]:
            learned.rows[subject] = None
            if _is_told(known[subject].learned):
                learned.records.append((subject, None))


def threshold_record(subject: str, state: Learning, change: Change, at: str) -> ThresholdRecord:
    """What is told of a context after a full window."""
    scope: Mapping[str, str | None] = scope_of(subject.partition("/")[2])
    return ThresholdRecord.model_validate(
        {
            **scope,
            "value": change.value,
            "previous": change.previous,
            "ema": change.ema,
            "success_rate": change.success_rate,
            "windows": state.windows,
            "outcomes": state.outcomes,
            "state": state.state,
            "reason": change.reason,
            "changed_at": at,
        }
    )


def _count_guess(lesson: GuessLesson, before: Row | None, guard: Mapping[int, int], learned: Learned) -> None:
    """Where no model answers and none is counted there is no row."""
    known = before.learned if before is not None and isinstance(before.learned, LiveHits) else LiveHits()
    guess = Guess(lesson.session, lesson.model, lesson.first, lesson.came, lesson.before, lesson.after)
    after, look = after_guess(known, guess, lesson.at)
    if before is not None or after != known:
        learned.rows[lesson.subject] = Row(after, guard, lesson.at)
    if look is not None:
        learned.records.append((lesson.subject, live_record(look, lesson.at)))


def _tell_branches(learned: Learned) -> None:
    for subject, row in learned.rows.items():
        if row is None or not isinstance(row.learned, BranchCounts) or not row.learned.stale:
            continue
        counts = dict(row.learned.counts)
        tenant, workflow_type, decision_id = branch_parts(subject.partition("/")[2])
        data = BranchStats(tenant=tenant, workflow_type=workflow_type, decision_id=decision_id, counts=counts)
        learned.records.append((subject, data))
        learned.rows[subject] = replace(row, learned=BranchCounts(counts, counts))


def _tell_edges(learned: Learned) -> None:
    """Once a chunk at most, however often runs went along an edge."""
    for subject, row, record in list(stale_edges(learned.rows)):
        learned.records.append((subject, record))
        learned.rows[subject] = row


def _capabilities_last(learned: Learned) -> None:
    """Rows are written in this order: where a capability knows of a run's end, all its edges do."""

    def is_capability(item: tuple[str, Row | None]) -> bool:
        return item[1] is not None and isinstance(item[1].learned, KnownCapability)

    learned.rows = dict(sorted(learned.rows.items(), key=is_capability))


def _lesson(record: Received) -> AnyLesson:
    try:
        lesson = decode_lesson(record.value)
        name = lesson.subject.partition("/")[2]
        if isinstance(lesson, ThresholdLesson):
            scope_of(name)
        elif isinstance(lesson, BranchLesson):
            branch_parts(name)
    except UnknownMessage as error:
        raise LogCorrupted(
            f"the lesson at offset {record.offset} of partition {record.partition} cannot be read: "
            f"{error.message}",
            offset=record.offset,
        ) from error
    except ValueError as error:
        raise UndecodableRecord(f"a lesson about nothing that is known: {error}") from None
    return lesson


def _is_told(learned: Knowledge) -> bool:
    if isinstance(learned, Learning):
        return learned.windows > 0
    if isinstance(learned, LiveHits):
        return any(window.outcomes >= LOOKS[0] for window in learned.windows.values())
    return bool(learned.told) if isinstance(learned, BranchCounts) else True


def _learning(row: Row | None) -> Learning:
    return row.learned if row is not None and isinstance(row.learned, Learning) else Learning()


def _counts(row: Row | None) -> BranchCounts:
    return row.learned if row is not None and isinstance(row.learned, BranchCounts) else BranchCounts()


def _divergences(row: Row | None) -> Divergences:
    return row.learned if row is not None and isinstance(row.learned, Divergences) else Divergences()
