"""Where batches are cut."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from pml.streams.sink_buffer import Buffer, Limits, plan_metadata, planned_end

LIMITS = Limits(rows=4, size_bytes=100)


@dataclass(frozen=True)
class Held:
    offset: int
    value: bytes = b""
    key: bytes | None = None


def filled(count: int, first: int = 10, size: int = 1) -> Buffer:
    buffer = Buffer(3, first, LIMITS)
    buffer.take([Held(first + number, b"x" * size) for number in range(count)], now_s=50.0)
    return buffer


def test_a_batch_names_its_range() -> None:
    batch = filled(3).cut()
    assert (batch.first, batch.end, batch.token) == (10, 13, "3-10-13")
    assert [record.offset for record in batch.records] == [10, 11, 12]


def test_a_batch_is_due_when_it_is_full_or_old() -> None:
    assert not filled(3).due(50.5, wait_s=1.0)
    assert filled(3).due(51.0, wait_s=1.0)
    assert filled(4).due(50.0, wait_s=1.0)
    assert filled(2, size=60).due(50.0, wait_s=1.0)
    assert not filled(0).due(100.0, wait_s=1.0)


def test_a_batch_keeps_the_limits_of_rows_and_bytes() -> None:
    assert filled(9).cut().end == 14
    assert filled(3, size=60).cut().end == 11


def test_one_record_above_the_limit_is_a_batch_of_its_own() -> None:
    assert filled(1, size=1_000).cut().end == 11


def test_a_batch_that_was_cut_stays_as_it_is_until_it_is_done() -> None:
    buffer = filled(2)
    first = buffer.cut()
    buffer.take([Held(12), Held(13)], now_s=51.0)
    assert buffer.cut() == first
    buffer.done(first, now_s=52.0)
    assert buffer.cut().token == "3-12-14"


def test_a_planned_end_is_waited_for_and_then_cut_exactly_there() -> None:
    buffer = Buffer(3, 10, LIMITS, planned=16)
    buffer.take([Held(offset) for offset in range(10, 15)], now_s=50.0)
    assert not buffer.full
    assert not buffer.due(1_000.0, wait_s=1.0)
    buffer.take([Held(offset) for offset in range(15, 19)], now_s=50.0)
    assert buffer.due(50.0, wait_s=1.0)
    assert buffer.cut().token == "3-10-16"


def test_what_was_read_before_a_seek_is_not_taken_twice() -> None:
    buffer = filled(3)
    buffer.take([Held(11), Held(12), Held(13)], now_s=50.0)
    assert [record.offset for record in buffer.records] == [10, 11, 12, 13]


@given(st.lists(st.integers(0, 120), max_size=40), st.lists(st.integers(1, 9), min_size=40, max_size=40))
def test_batches_cover_every_offset_once_and_hold_no_more_than_allowed(
    sizes: list[int], chunks: list[int]
) -> None:
    records = [Held(offset, b"x" * size) for offset, size in enumerate(sizes)]
    buffer, taken, ends = Buffer(0, 0, LIMITS), 0, [0]
    for chunk in chunks:
        buffer.take(records[taken : taken + chunk], now_s=0.0)
        taken += chunk
        while buffer.due(10.0, wait_s=1.0):
            batch = buffer.cut()
            assert batch.first == ends[-1]
            assert [record.offset for record in batch.records] == list(range(batch.first, batch.end))
            assert len(batch.records) <= LIMITS.rows
            assert len(batch.records) == 1 or sum(len(r.value) for r in batch.records) <= LIMITS.size_bytes
            buffer.done(batch, now_s=0.0)
            ends.append(batch.end)
    assert ends[-1] == len(records)
    assert (buffer.size_bytes, len(buffer.records)) == (0, 0)


@given(st.integers(0, 2**62), st.integers(1, 10_000))
def test_a_plan_is_read_back(offset: int, count: int) -> None:
    assert planned_end(offset, plan_metadata(offset + count)) == offset + count


def test_metadata_that_is_no_plan_plans_nothing() -> None:
    assert planned_end(7, "") is None
    assert planned_end(7, "somebody else's") is None
    assert planned_end(7, plan_metadata(7)) is None
