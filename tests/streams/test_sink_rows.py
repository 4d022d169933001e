"""What becomes a row, and what cannot."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from pml.clickhouse.rows import EVENT_COLUMNS
from pml.schemas.codec import encode
from pml.schemas.errors import LogCorrupted, UndecodableRecord
from pml.schemas.events import Cause, Event
from pml.streams.sink_rows import row_of
from tests.log_writer import speculation_ended


@dataclass(frozen=True)
class Held:
    """A record as the consumer has it."""

    value: bytes | None
    topic: str = "pml.events"
    partition: int = 4
    offset: int = 107


EVENT = Event(
    id="local/ses_1:100:7",
    type="speculation.ended",
    tenant="local",
    session_id="ses_1",
    epoch=100,
    run_id="run_1",
    seq=7,
    offset=107,
    occurred_at="2026-11-22T10:00:00.123456Z",
    cause=Cause(topic="pml.tool-outcomes", partition=4, offset=9),
    data=speculation_ended(),
)


def changed(**fields: Any) -> Held:
    return Held(orjson.dumps({**orjson.loads(encode(EVENT)), **fields}))


def test_a_row_holds_the_envelope_and_the_data_as_the_log_has_them() -> None:
    row = dict(zip(EVENT_COLUMNS, row_of(Held(encode(EVENT))), strict=True))
    assert (row["partition"], row["log_offset"], row["epoch"], row["seq"]) == (4, 107, 100, 7)
    assert (row["type"], row["version"], row["run_id"]) == ("speculation.ended", 1, "run_1")
    assert row["occurred_at"] == datetime(2026, 11, 22, 10, 0, 0, 123456, tzinfo=UTC)
    assert (row["cause_topic"], row["cause_partition"], row["cause_offset"]) == ("pml.tool-outcomes", 4, 9)
    assert orjson.loads(row["data"]) == orjson.loads(encode(EVENT))["data"]


@pytest.mark.parametrize(
    "record",
    [
        Held(None),
        Held(b"\xff\xfe"),
        Held(b"[]"),
        changed(data={}),
        changed(seq="seven"),
        changed(offset=108),
        changed(epoch=108),
        changed(seq=-1),
        changed(occurred_at="yesterday"),
    ],
)
def test_what_is_no_event_of_this_place_is_undecodable(record: Held) -> None:
    with pytest.raises(UndecodableRecord):
        row_of(record)


@pytest.mark.parametrize("fields", [{"version": 2}, {"type": "speculation.imagined"}])
def test_what_a_newer_release_wrote_says_where_it_is_and_what_to_do(fields: dict[str, Any]) -> None:
    with pytest.raises(LogCorrupted, match=r"pml.events/4 offset 107: .* upgrade PML") as stopped:
        row_of(changed(**fields))
    assert stopped.value.details == {"offset": 107}
