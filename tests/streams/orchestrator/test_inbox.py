"""The queue of a partition."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pml.streams.orchestrator.inbox import Inbox


def chunk(*offsets: int, topic: str = "a", size: int = 10) -> list[Any]:
    return [SimpleNamespace(topic=topic, offset=offset, key=b"", value=b"v" * size) for offset in offsets]


def inbox(limit: int = 1_000, **positions: int) -> tuple[Inbox, list[bool]]:
    pauses: list[bool] = []
    made = Inbox(limit, pauses.append)
    made.open(positions)
    return made, pauses


async def test_both_inputs_come_out_in_the_order_of_arrival() -> None:
    box, _ = inbox(a=3, b=0)
    box.put(chunk(3, 4), lambda: "a4")
    box.put(chunk(0, topic="b"), lambda: "b0")
    taken = await box.take(10, 1_000)
    assert [(arrival.record.topic, arrival.record.offset) for arrival in taken] == [
        ("a", 3),
        ("a", 4),
        ("b", 0),
    ]
    assert [arrival.acknowledge() if arrival.acknowledge else None for arrival in taken] == [None, "a4", "b0"]
    assert box.positions == {"a": 5, "b": 1}


async def test_what_comes_twice_is_taken_once() -> None:
    box, _ = inbox(a=3)
    box.put(chunk(1, 2, 3, 4))
    box.put(chunk(3, 4), lambda: None)
    box.put(chunk(4, 5))
    assert [arrival.record.offset for arrival in await box.take(10, 1_000)] == [3, 4, 5]


async def test_a_hole_is_noted_with_what_comes_after_it() -> None:
    box, _ = inbox(a=3)
    box.put(chunk(5, 6, 9))
    taken = await box.take(10, 1_000)
    assert [(arrival.record.offset, arrival.hole_from) for arrival in taken] == [(5, 3), (6, None), (9, 7)]


async def test_no_more_is_taken_than_was_asked_for() -> None:
    box, _ = inbox(a=0)
    box.put(chunk(*range(10)))
    assert len(await box.take(4, 1_000)) == 4
    assert len(await box.take(10, 25)) == 2
    assert len(await box.take(10, 1)) == 1, "at least one, however large"
    assert len(box) == 3
    assert box.size == 30


async def test_it_asks_for_a_pause_above_its_limit_and_for_more_below_half_of_it() -> None:
    box, pauses = inbox(limit=100, a=0)
    box.put(chunk(*range(10)))
    assert pauses == []
    box.put(chunk(10))
    assert pauses == [True]
    await box.take(5, 1_000)
    assert pauses == [True]
    await box.take(2, 1_000)
    assert pauses == [True, False]


async def test_a_closed_inbox_is_empty_and_takes_nothing_until_it_is_opened() -> None:
    box, _ = inbox(a=0)
    box.put(chunk(0, 1))
    box.close()
    box.put(chunk(2))
    assert (len(box), box.size) == (0, 0)
    waiting = asyncio.create_task(box.take(10, 1_000))
    box.open({"a": 1})
    box.put(chunk(0, 1, 2))
    assert [arrival.record.offset for arrival in await waiting] == [1, 2]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 8)), max_size=30))
def test_each_offset_comes_out_once_in_order_or_as_part_of_a_hole(fetches: list[tuple[int, int]]) -> None:
    async def run() -> list[int]:
        box, _ = inbox(a=0)
        for start, count in fetches:
            box.put(chunk(*range(start, start + count)))
        taken = await box.take(1_000, 1_000_000) if len(box) else []
        out: list[int] = []
        for arrival in taken:
            if arrival.hole_from is not None:
                out += range(arrival.hole_from, arrival.record.offset)
            out.append(arrival.record.offset)
        return out

    out = asyncio.run(run())
    assert out == list(range(len(out)))
    assert len(out) == max((start + count for start, count in fetches), default=0)
