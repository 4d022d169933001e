"""Which records of the log count."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.schemas.codec import encode
from pml.schemas.errors import LogCorrupted
from pml.schemas.events import CommandAttached, Event
from pml.streams.log.reader import (
    OFFSET_HEADER,
    counted,
    counted_event,
    event_headers,
    event_type,
)


@dataclass(frozen=True)
class Record:
    offset: int
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    key: bytes | None = b"local/s"


def event(offset: int, traceparent: str | None = None) -> Event:
    return Event(
        id=f"local/s:{offset}:0",
        type="command.attached",
        tenant="local",
        session_id="s",
        epoch=offset,
        seq=0,
        offset=offset,
        occurred_at="2026-11-22T10:00:00.000000Z",
        traceparent=traceparent,
        data=CommandAttached(status="running"),
    )


def record(written_for: int, lies_at: int) -> Record:
    written = event(written_for)
    return Record(lies_at, encode(written), tuple(event_headers(written)))


@given(st.integers(0, 2**62), st.integers(0, 2**62))
def test_a_record_counts_exactly_where_it_was_written_for(written_for: int, lies_at: int) -> None:
    assert counted(record(written_for, lies_at)) == (written_for == lies_at)
    assert counted(record(lies_at, lies_at))


@pytest.mark.parametrize("header", [None, b"", b"x", b" 7", b"07", b"7.0", b"\xff"])
def test_a_record_without_a_valid_offset_header_is_void(header: bytes | None) -> None:
    good = record(7, 7)
    others = tuple(pair for pair in good.headers if pair[0] != OFFSET_HEADER)
    headers = others if header is None else (*others, (OFFSET_HEADER, header))
    assert counted(good)
    assert not counted(replace(good, headers=headers))


def test_void_records_are_passed_over_in_order() -> None:
    records = [record(0, 0), record(0, 1), record(2, 2), record(9, 3), record(4, 4)]
    assert [item.offset for item in records if counted(item)] == [0, 2, 4]


def test_the_headers_of_an_event_say_what_the_contract_names() -> None:
    headers = dict(event_headers(event(5, traceparent="00-abc-def-01")))
    assert headers == {
        "pml-type": b"command.attached",
        "pml-version": b"1",
        "pml-tenant": b"local",
        "pml-offset": b"5",
        "content-type": b"application/json",
        "traceparent": b"00-abc-def-01",
    }
    assert "traceparent" not in dict(event_headers(event(5)))
    assert event_type(record(5, 5)) == "command.attached"
    assert event_type(Record(5, None, ())) == ""


def test_a_counted_record_gives_its_event() -> None:
    assert counted_event(record(3, 3)) == event(3)


def test_what_our_own_log_cannot_say_stops_the_reader() -> None:
    good = record(3, 3)
    for value in (
        None,
        b"{",
        b"[]",
        b'{"type": "nobody.knows"}',
        encode(event(3)).replace(b'"type"', b'"t"'),
    ):
        with pytest.raises(LogCorrupted, match="offset 3"):
            counted_event(replace(good, value=value))
    newer = encode(event(3)).replace(b'"version":1', b'"version":99')
    with pytest.raises(LogCorrupted, match="newer one"):
        counted_event(replace(good, value=newer))


def test_a_header_that_contradicts_the_value_stops_the_reader() -> None:
    liar = replace(record(4, 4), offset=3, headers=((OFFSET_HEADER, b"3"),))
    assert counted(liar)
    with pytest.raises(LogCorrupted, match="in its value"):
        counted_event(liar)
