"""The folds of a replay against tables and rows that were made from the same events, and altered ones."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import orjson
import pytest

from pml.clickhouse.expiry import NEVER
from pml.clickhouse.rows import EVENT_COLUMNS, event_fields, event_row
from pml.processors.speculation.metrics import Totals, encode_totals, observe
from pml.processors.workflow import Session, definition_record, evolve
from pml.schemas.codec import encode
from pml.schemas.events import Event, EventData
from pml.schemas.identifiers import event_id, session_key
from pml.schemas.times import to_rfc3339
from pml.streams.connection import partition_for
from pml.streams.orchestrator.table import Life, definition_key, life_key, write_session
from pml.streams.replay.accounts import AccountsReplay
from pml.streams.replay.report import json_difference, shown
from pml.streams.replay.rows import RowsReplay
from pml.streams.replay.sessions import SessionsReplay
from pml.streams.replay.sources import Batches, LogEntry, read_lines, within
from tests.clickhouse.history import failed
from tests.log_writer import (
    START_MS,
    run_completed,
    run_started,
    speculation_ended,
    task_completed,
    task_started,
)

SESSION = "ses_1"
PARTITION = partition_for(session_key("local", SESSION))
FIRST = 7
RUN = (run_started(), task_started(), task_completed(), run_completed())


def events(*data: EventData) -> list[Event]:
    """Events of one session from offset 7 on, numbered as the orchestrator does."""
    return [
        Event(
            id=event_id("local", SESSION, FIRST, seq),
            type=item.TYPE,
            version=item.VERSION,
            tenant="local",
            session_id=SESSION,
            epoch=FIRST,
            run_id="run_1",
            seq=seq,
            offset=FIRST + seq,
            occurred_at=to_rfc3339(START_MS + seq),
            data=item,
        )
        for seq, item in enumerate(data)
    ]


def entries(found: list[Event]) -> list[LogEntry]:
    read = read_lines([encode(event) for event in found])
    return [entry for entry in read if isinstance(entry, LogEntry)]


def folded(found: list[Event]) -> dict[bytes, bytes]:
    """The live record of the session after these events."""
    state: Session | None = None
    for event in found:
        state = evolve(state, event)
    assert state is not None
    key = life_key(PARTITION, Life(session_key("local", SESSION), FIRST))
    return {key: write_session(state, 3)}


def rows_of(found: list[Event]) -> list[tuple[Any, ...]]:
    return [event_row(entry.partition, entry.fields) for entry in entries(found)]


def compare_rows(
    found: list[Event],
    rows: list[tuple[Any, ...]],
    committed: int = 100,
    expired_before: datetime = NEVER,
) -> RowsReplay:
    at = EVENT_COLUMNS.index("log_offset")
    replay = RowsReplay(
        lambda number, first, last: [row for row in rows if row[0] == number and first <= row[at] <= last],
        {PARTITION: committed},
        lambda: expired_before,
    )
    for entry in entries(found):
        if replay.fold(entry):
            replay.compare(entry.partition)
    replay.finish({PARTITION: found[-1].offset})
    return replay


def test_the_partition_of_a_line_is_that_of_its_session() -> None:
    assert {entry.partition for entry in entries(events(*RUN))} == {PARTITION}


def test_sessions_are_the_same_at_the_event_the_live_record_ends_with() -> None:
    for count in range(1, len(RUN) + 1):
        replay = SessionsReplay(folded(events(*RUN)[:count]))
        for entry in entries(events(*RUN)):
            replay.fold(entry)
        replay.finish()
        assert replay.comparison.verdict == "same"
        assert replay.comparison.compared == 1
        assert replay.comparison.notes == []


def test_an_altered_state_is_named() -> None:
    live = {key: value.replace(b'"doubtful":', b'"doubtfuL":') for key, value in folded(events(*RUN)).items()}
    replay = SessionsReplay(live)
    for entry in entries(events(*RUN)):
        replay.fold(entry)
    assert replay.comparison.first is not None
    assert replay.comparison.first.key == event_id("local", SESSION, FIRST, len(RUN) - 1)
    assert "doubtfuL" in replay.comparison.first.found


def test_an_altered_definition_is_named() -> None:
    life = Life(session_key("local", SESSION), FIRST)
    key, kept = definition_key(PARTITION, life, "run_1"), definition_record(events(*RUN)[0])
    other = definition_key(PARTITION, life, "run_of_another_log")
    for value, fields in ((kept, None), (kept.replace(b'"v":', b'"w":'), "definition")):
        replay = SessionsReplay(folded(events(*RUN)) | {key: value, other: b"{}"})
        for entry in entries(events(*RUN)):
            replay.fold(entry)
        replay.finish()
        first = replay.comparison.first
        assert (None if first is None else first.field) == fields
        assert replay.comparison.notes == ["1 live definitions are of runs that were not folded"]
    assert first is not None
    assert (first.offset, first.key) == (FIRST, event_id("local", SESSION, FIRST, 0))


def test_a_gap_in_a_session_is_named_once() -> None:
    replay = SessionsReplay({})
    for entry in entries([event for event in events(*RUN) if event.seq != 1]):
        replay.fold(entry)
    assert replay.comparison.differences == 1
    assert replay.comparison.first is not None
    assert (replay.comparison.first.offset, replay.comparison.first.field) == (FIRST + 2, "seq")


def test_a_session_that_began_before_what_is_read_is_passed_over_and_told() -> None:
    replay = SessionsReplay(folded(events(*RUN)), whole=False)
    for entry in entries(events(*RUN)[1:]):
        replay.fold(entry)
    replay.finish()
    assert (replay.comparison.differences, replay.comparison.verdict) == (0, "not compared")
    assert replay.comparison.notes[-1].startswith("1 sessions began before")


async def test_a_stretch_has_no_holes() -> None:
    """The third event has an earlier time than the second; order is that of the log."""
    found = events(*RUN)
    found[2] = found[2].model_copy(update={"occurred_at": to_rfc3339(START_MS - 5)})

    async def every() -> Batches:
        for entry in entries(found):
            yield [entry]

    async def offsets(since_ms: int | None, until_ms: int | None) -> list[int]:
        batches = [batch async for batch in within(every(), since_ms, until_ms)]
        return [
            entry.event.offset - FIRST for batch in batches for entry in batch if isinstance(entry, LogEntry)
        ]

    assert await offsets(None, None) == [0, 1, 2, 3]
    assert await offsets(START_MS + 1, None) == [1, 2, 3]
    assert await offsets(None, START_MS + 3) == [0, 1, 2]
    assert await offsets(START_MS + 1, START_MS + 3) == [1, 2]


async def test_of_one_partition_nothing_is_read_beyond_the_stretch() -> None:
    read: list[int] = []

    async def every() -> Batches:
        for entry in entries(events(*RUN)):
            read.append(entry.event.offset - FIRST)
            yield [entry]

    async def found(only: int | None) -> list[int]:
        return [len(list(batch)) async for batch in within(every(), None, START_MS + 1, only)]

    assert (await found(PARTITION), read) == ([1, 0], [0, 1])
    assert await found(None) == [1, 0, 0, 0]


def test_an_id_that_is_not_its_own_is_named() -> None:
    found = events(*RUN)
    found[1] = found[1].model_copy(update={"id": "another"})
    replay = SessionsReplay({})
    for entry in entries(found):
        replay.fold(entry)
    first = replay.comparison.first
    assert first is not None
    assert (replay.comparison.differences, first.offset, first.field) == (1, FIRST + 1, "id")
    assert first.expected == event_id("local", SESSION, FIRST, 1)


def test_what_a_line_has_besides_is_compared_too() -> None:
    found = events(*RUN)
    line = orjson.loads(encode(found[1]))
    line["data"]["added"] = 1
    (entry,) = read_lines([orjson.dumps(line)])
    assert entry.fields["data"]["added"] == 1


def test_of_a_source_that_begins_late_a_gap_in_what_began_in_it_is_a_difference() -> None:
    for begins, told in ((FIRST, (1, 0)), (FIRST + 1, (0, 1))):
        replay = SessionsReplay({}, begins=begins)
        for entry in entries(events(*RUN)[1:]):
            replay.fold(entry)
        replay.finish()
        assert (replay.comparison.differences, len(replay.comparison.notes)) == told


def test_a_failure_of_a_task_that_its_run_does_not_have_is_a_difference() -> None:
    replay = SessionsReplay({})
    written = events(run_started(), task_started(), failed("absent", final=True), run_completed())
    for entry in entries(written):
        replay.fold(entry)
    assert replay.comparison.first is not None
    assert (replay.comparison.first.field, replay.comparison.first.offset) == ("event", FIRST + 2)


def test_states_that_find_no_room_are_told() -> None:
    replay = SessionsReplay({}, states_kept=0)
    for entry in entries(events(*RUN)):
        replay.fold(entry)
    replay.finish()
    assert replay.comparison.notes == ["1 states found no room and were not folded on"]


def test_the_states_that_were_used_longest_ago_go_first() -> None:
    lives = {
        name: entries([event.model_copy(update={"session_id": name}) for event in events(*RUN)])
        for name in ("a", "b", "c")
    }
    replay = SessionsReplay({}, states_kept=2)
    for name in ("a", "b", "a", "c", "a"):  # the third finds no room, and `b` was used longest ago
        replay.fold(lives[name].pop(0))
    folded = replay.comparison.folded
    replay.fold(lives["b"].pop(0))
    assert (folded, replay.comparison.folded) == (5, 5)
    replay.fold(lives["a"].pop(0))
    replay.fold(lives["c"].pop(0))
    replay.finish()
    assert replay.comparison.folded == 7
    assert replay.comparison.notes == ["1 states found no room and were not folded on"]


@pytest.mark.parametrize(("sessions", "pushed_out"), [(34, 0), (35, 3), (37, 3), (38, 6)])
def test_of_many_states_a_few_are_pushed_out_at_once_and_never_more_than_must(
    sessions: int, pushed_out: int
) -> None:
    replay = SessionsReplay({}, states_kept=32)
    for number in range(sessions):
        begun = [events(*RUN)[0].model_copy(update={"session_id": f"ses_{number}"})]
        replay.fold(entries(begun)[0])
    replay.finish()
    assert replay.comparison.folded == sessions
    told = [f"{pushed_out} states found no room and were not folded on"] if pushed_out else []
    assert replay.comparison.notes == told


def accounts(guard: int) -> bytes:
    totals = Totals()
    for event in events(*RUN, speculation_ended()):
        if event.offset <= guard:
            seen = observe(event.type, event.data.model_dump(exclude_none=True))
            if seen is not None:
                totals.add(seen)
    return encode_totals(totals, guard)


def compare_accounts(value: bytes) -> AccountsReplay:
    replay = AccountsReplay({PARTITION: value})
    found = events(*RUN, speculation_ended())
    for entry in entries(found):
        replay.fold(entry)
    replay.finish({PARTITION: found[-1].offset})
    return replay


def test_metrics_are_the_same_as_far_as_their_guard() -> None:
    for guard in range(FIRST, FIRST + 5):
        assert compare_accounts(accounts(guard)).comparison.verdict == "same"


def test_altered_metrics_are_named() -> None:
    comparison = compare_accounts(
        accounts(FIRST + 3).replace(b'"completed":[1', b'"completed":[2')
    ).comparison
    assert comparison.first is not None
    assert (comparison.first.partition, comparison.first.offset) == (PARTITION, FIRST + 3)


def test_metrics_that_are_further_than_the_source_are_not_compared() -> None:
    comparison = compare_accounts(accounts(FIRST + 9)).comparison
    assert comparison.verdict == "not compared"
    assert comparison.notes


def test_metrics_whose_first_events_have_expired_are_not_compared() -> None:
    replay = AccountsReplay({PARTITION: accounts(FIRST + 3)}, lost=True)
    replay.finish({PARTITION: FIRST + 4})
    assert replay.comparison.verdict == "not compared"
    assert replay.comparison.notes == [
        "1 partitions are not compared: their first events have expired in the store"
    ]


def test_rows_are_the_same() -> None:
    replay = compare_rows(events(*RUN), rows_of(events(*RUN)))
    assert (replay.comparison.verdict, replay.comparison.compared) == ("same", len(RUN))


def test_the_first_field_that_differs_is_named() -> None:
    altered = rows_of(events(*RUN))
    altered[1] = (*altered[1][:-1], "{}")
    first = compare_rows(events(*RUN), altered).comparison.first
    assert first is not None
    assert (first.offset, first.field, first.found) == (FIRST + 1, "data.arguments", "none")


def test_a_missing_row_is_a_difference_only_where_the_sink_has_been() -> None:
    rows = rows_of(events(*RUN))[:-1]
    assert compare_rows(events(*RUN), rows).comparison.differences == 1
    behind = compare_rows(events(*RUN), rows, committed=FIRST + 3).comparison
    assert (behind.differences, behind.notes) == (
        0,
        ["1 events are not in the store: the sink is behind, or they are of another log"],
    )


def test_a_missing_row_is_a_difference_only_where_its_event_cannot_have_expired() -> None:
    found = events(*RUN)
    before = datetime.fromisoformat(found[2].occurred_at)
    comparison = compare_rows(found, [], expired_before=before).comparison
    assert comparison.notes == ["2 events have expired in the store"]
    assert comparison.first is not None
    assert (comparison.differences, comparison.first.offset) == (2, FIRST + 2)
    kept = compare_rows(found, rows_of(found), expired_before=before).comparison
    assert (kept.verdict, kept.compared, kept.notes) == ("same", len(RUN), [])


def test_a_row_that_the_log_has_not_is_a_difference() -> None:
    found = events(*RUN)
    first = compare_rows([found[0], *found[2:]], rows_of(found)).comparison.first
    assert first is not None
    assert (first.offset, first.field) == (FIRST + 1, "row")


@pytest.mark.parametrize(
    ("expected", "found", "told"),
    [
        ('{"a":1,"b":{"c":2}}', '{"a":1,"b":{"c":3}}', ("data.b.c", "2", "3")),
        ('{"a":1}', '{"a":1,"b":null}', ("data.b", "none", "null")),
        ('{"a":[1,2]}', '{"a":[1]}', ("data.a", "[1,2]", "[1]")),
        ('{"a":1}', '{"a": 1}', ("data", '{"a":1}', '{"a": 1}')),
        ('{"a":1}', "forged", ("data", '{"a":1}', "forged")),
    ],
)
def test_the_field_of_an_event_that_differs_is_named(
    expected: str, found: str, told: tuple[str, ...]
) -> None:
    assert json_difference("data", expected, found) == told


def test_an_event_comes_back_from_its_row_as_it_was() -> None:
    for entry in entries(events(*RUN)):
        kept = {name: value for name, value in entry.fields.items() if name != "id" and value is not None}
        found = event_fields(event_row(entry.partition, entry.fields))
        assert found.pop("principal") == kept.pop("principal", "")
        assert found == kept


def test_long_values_are_shown_where_they_part() -> None:
    expected, found = shown("a" * 500 + "b" + "c" * 500, "a" * 500 + "d" + "c" * 500)
    assert "b" in expected
    assert "d" in found
    assert len(expected) <= 122
