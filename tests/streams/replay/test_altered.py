"""Logs that somebody altered, reordered or repeated: each is named where it is, and none ends the replay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from pml.clickhouse.expiry import NEVER
from pml.clickhouse.rows import EVENT_COLUMNS, event_row
from pml.schemas.codec import encode
from pml.schemas.errors import StoreUnavailable
from pml.schemas.events import Event
from pml.schemas.identifiers import event_id, session_key
from pml.streams.connection import partition_for
from pml.streams.replay.play import Folds, ReplayReport, replay
from pml.streams.replay.report import Difference
from pml.streams.replay.rows import RowsReplay
from pml.streams.replay.sessions import SessionsReplay
from pml.streams.replay.sources import LogEntry, Unreadable, read_file, stored_entry, within
from tests.streams.replay.test_comparison import PARTITION, RUN, events

OFFSET = EVENT_COLUMNS.index("log_offset")
OTHER = next(
    name
    for name in map("ses_o{}".format, range(100))
    if partition_for(session_key("local", name)) == PARTITION
)


def lines() -> list[dict[str, Any]]:
    """Two sessions of one partition, one behind the other, as `pml events dump` writes them."""
    found = events(*RUN)
    return [orjson.loads(encode(event)) for event in (*found, *map(_of_the_other, found))]


def _of_the_other(event: Event) -> Event:
    epoch = event.epoch + len(RUN)
    told = {"session_id": OTHER, "epoch": epoch, "offset": event.offset + len(RUN)}
    return event.model_copy(update=told | {"id": event_id("local", OTHER, epoch, event.seq)})


async def replayed(read: list[dict[str, Any]], since_ms: int | None = None) -> ReplayReport:
    """What is said of these lines beside what ClickHouse has of the honest ones."""
    rows = [event_row(PARTITION, fields) for fields in lines()]
    committed = {PARTITION: rows[-1][OFFSET] + 1}

    def stored(partition: int, first: int, last: int) -> list[tuple[Any, ...]]:
        return [row for row in rows if first <= row[OFFSET] <= last]

    folds = Folds(
        SessionsReplay({}, whole=since_ms is None),
        rows=RowsReplay(stored, committed, lambda: NEVER, whole=since_ms is None),
    )
    return await replay(within(read_file(map(orjson.dumps, read)), since_ms, None), folds)


def first_of(report: ReplayReport) -> Difference:
    found = [each.first for each in report.comparisons if each.first is not None]
    return min(found, key=lambda each: each.lies)


async def test_an_honest_log_is_the_same() -> None:
    report = await replayed(lines())
    assert (report.same, report.events) == (True, 2 * len(RUN))


async def test_two_sessions_that_changed_places_are_named() -> None:
    read = lines()
    read[3], read[4] = read[4], read[3]
    report = await replayed(read)
    assert (first_of(report).field, first_of(report).offset) == ("offset", read[4]["offset"])


async def test_an_event_that_is_there_twice_is_named() -> None:
    read = lines()
    report = await replayed([*read[:5], read[4], *read[5:]])
    assert (first_of(report).field, report.events) == ("offset", len(read))


async def test_an_offset_before_the_first_hides_nothing() -> None:
    read = lines()
    read[-1]["offset"] = -1
    read[2]["data"]["result"] = {"forged": True}
    report = await replayed(read)
    assert first_of(report).field == "offset"
    assert next(each for each in report.comparisons if each.projection == "clickhouse").differences


def _at(*path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def write(fields: dict[str, Any]) -> None:
        for name in path[:-1]:
            fields = fields[name]
        fields[path[-1]] = value

    return write


ALTERED = {
    "its time": (1, _at("occurred_at", value="X")),
    "a deadline": (1, _at("data", "deadline_at", value="")),
    "how long it serves": (1, _at("data", "ttl_s", value=1e308)),
    "its version": (1, lambda fields: fields.pop("version")),
}


@pytest.mark.parametrize("altered", ALTERED)
async def test_an_event_that_nothing_can_be_made_of_is_named_and_the_others_are_folded(altered: str) -> None:
    read = lines()
    place, alter = ALTERED[altered]
    alter(read[place])
    report = await replayed(read)
    assert first_of(report).key.startswith(read[place]["id"])
    assert first_of(report).offset == read[place]["offset"]
    assert report.events == len(read)


async def test_a_session_is_not_folded_on_behind_what_nothing_can_be_made_of() -> None:
    read = lines()
    place, alter = ALTERED["a deadline"]
    alter(read[place])
    found = {each.projection: each for each in (await replayed(read)).comparisons}
    assert found["sessions"].differences == 1
    # It is a row like every other one, and the one that was altered.
    assert (found["clickhouse"].compared, found["clickhouse"].differences) == (len(read), 1)


def test_a_stored_row_whose_data_are_no_json_is_named() -> None:
    (row, *_) = (event_row(PARTITION, fields) for fields in lines())
    found = stored_entry((*row[:-1], "forged"))
    assert isinstance(found, Unreadable)
    assert (found.place[:2], found.session) == ((PARTITION, row[OFFSET]), ("local", "ses_1"))


async def test_a_time_that_cannot_be_read_ends_no_stretch() -> None:
    read = lines()
    read[2]["occurred_at"] = "X"
    report = await replayed(read, since_ms=0)
    assert first_of(report).offset == read[2]["offset"]


class FailingOnce(RowsReplay):
    """Asks at every event, and is answered what nothing can be made of, or that nobody answers."""

    def __init__(self, error: Exception) -> None:
        super().__init__(lambda *_: [], {}, lambda: NEVER)
        self.error: Exception | None = error

    def fold(self, entry: LogEntry) -> bool:
        return super().fold(entry) or True

    def compare(self, partition: int) -> None:
        error, self.error = self.error, None
        if error is not None:
            raise error


async def test_rows_that_nothing_can_be_made_of_are_named_and_the_replay_goes_on() -> None:
    folds = Folds(SessionsReplay({}), rows=FailingOnce(ValueError("no row")))
    report = await replay(read_file(map(orjson.dumps, lines())), folds)
    assert report.events == 2 * len(RUN)
    assert (first_of(report).projection, first_of(report).found) == ("log", "ValueError")


async def test_a_store_that_is_away_ends_the_replay() -> None:
    folds = Folds(SessionsReplay({}), rows=FailingOnce(StoreUnavailable("no store")))
    with pytest.raises(StoreUnavailable, match="no store"):
        await replay(read_file(map(orjson.dumps, lines())), folds)
