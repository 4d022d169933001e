"""What is live and lies behind the end of the log proves that the log has lost it."""

from __future__ import annotations

from typing import Any

import pytest

from pml.clickhouse.expiry import NEVER
from pml.clickhouse.rows import EVENT_COLUMNS
from pml.schemas.identifiers import session_key
from pml.streams.orchestrator.table import Life, life_key
from pml.streams.replay.accounts import AccountsReplay
from pml.streams.replay.play import Folds, ReplayReport, replay
from pml.streams.replay.report import Comparison
from pml.streams.replay.rows import RowsReplay
from pml.streams.replay.selection import CLICKHOUSE, KAFKA, Selection
from pml.streams.replay.sessions import SessionsReplay
from pml.streams.replay.sources import Batches
from tests.log_writer import speculation_ended
from tests.streams.replay.test_comparison import (
    FIRST,
    PARTITION,
    RUN,
    SESSION,
    accounts,
    entries,
    events,
    folded,
    rows_of,
)

END = FIRST + len(RUN)
OFFSET = EVENT_COLUMNS.index("log_offset")
EMPTY = PARTITION + 1
"""A partition of which no event is left."""


async def replayed(kept: int, ends: dict[int, int] | None, committed: int = END) -> ReplayReport:
    """The first so many events of a run beside what is live of all of them."""

    async def source() -> Batches:
        yield entries(events(*RUN)[:kept])

    def stored(partition: int, first: int, last: int) -> list[tuple[Any, ...]]:
        rows = [*rows_of(events(*RUN)), (EMPTY, *rows_of(events(*RUN))[0][1:])]
        return [row for row in rows if row[0] == partition and first <= row[OFFSET] <= last]

    folds = Folds(
        SessionsReplay(folded(events(*RUN)), ends=ends),
        AccountsReplay({PARTITION: accounts(END - 1)}, ends=ends),
        RowsReplay(stored, {PARTITION: committed}, lambda: NEVER, ends=ends),
    )
    return await replay(source(), folds)


def named(report: ReplayReport) -> dict[str, Comparison]:
    return {each.projection: each for each in report.comparisons}


@pytest.mark.parametrize("projection", ["sessions", "metrics", "clickhouse"])
async def test_what_lies_behind_the_end_of_the_log_is_a_difference(projection: str) -> None:
    found = named(await replayed(2, {PARTITION: FIRST + 2}))[projection]
    assert found.first is not None
    assert (found.differences, found.first.lies) == (1, (PARTITION, END - 1))
    assert found.first.found == f"none: the log ends at {FIRST + 2}"
    assert not found.notes


async def test_the_session_of_a_lost_event_is_named() -> None:
    first = named(await replayed(2, {PARTITION: FIRST + 2}))["sessions"].first
    assert first is not None
    assert first.key == f"local/{SESSION}"


async def test_a_partition_that_lost_all_its_events_is_named() -> None:
    assert [each.differences for each in (await replayed(0, {PARTITION: 0})).comparisons] == [0, 1, 1, 1]


async def test_a_log_that_has_all_and_grows_meanwhile_is_the_same() -> None:
    """Up to where it ended after what is live was read; it may end with records that do not count."""
    for end in (END, END + 3):
        report = await replayed(len(RUN), {PARTITION: end})
        assert report.same
        assert [each.notes for each in report.comparisons] == [[]] * len(report.comparisons)
    # What is live was read when the run was not at its end yet.
    assert (await replayed(len(RUN), {PARTITION: END}, committed=FIRST)).same


def test_records_that_do_not_count_stop_no_comparison_of_the_metrics() -> None:
    """The guard names the last record that was read, which need not be an event that counts."""
    replay = AccountsReplay({PARTITION: accounts(END + 1)}, ends={PARTITION: END + 2})
    for entry in entries(events(*RUN, speculation_ended())):
        replay.fold(entry)
    replay.finish({PARTITION: END})
    assert (replay.comparison.verdict, replay.comparison.notes) == ("same", [])


async def test_rows_of_a_partition_without_events_are_looked_at() -> None:
    found = named(await replayed(len(RUN), {PARTITION: END, EMPTY: FIRST + 1}))["clickhouse"]
    assert found.first is not None
    assert (found.differences, found.first.lies) == (1, (EMPTY, FIRST))
    # Beyond the end it may have been written meanwhile.
    assert (await replayed(len(RUN), {PARTITION: END, EMPTY: FIRST})).same


async def test_of_a_file_that_may_be_older_it_is_only_told() -> None:
    report = await replayed(2, None)
    assert report.same
    assert named(report)["sessions"].notes == ["1 live records end with events that the source does not have"]
    assert len(named(report)["metrics"].notes) == 1


def test_live_records_of_other_partitions_are_not_measured_by_this_end() -> None:
    value = next(iter(folded(events(*RUN)).values()))
    other = life_key(EMPTY, Life(session_key("local", SESSION), FIRST))
    replay = SessionsReplay({other: value}, ends={PARTITION: 0})
    replay.finish()
    assert replay.comparison.differences == 0


@pytest.mark.parametrize(
    ("selection", "whole"),
    [
        (Selection(KAFKA), True),
        (Selection(KAFKA, session=("local", SESSION)), False),
        (Selection(KAFKA, since_ms=1), False),
        (Selection(KAFKA, until_ms=1), False),
        (Selection(CLICKHOUSE), False),
        (Selection("log.jsonl"), False),
    ],
)
def test_only_all_of_the_log_proves_a_loss(selection: Selection, whole: bool) -> None:
    assert selection.to_the_end is whole
