"""Rounds of several sides."""

from __future__ import annotations

from functools import partial

from benchmarks.plan import in_turns


async def test_another_side_begins_in_each_round() -> None:
    order: list[str] = []

    async def side(name: str) -> None:
        order.append(name)

    for number in range(3):
        await in_turns(number, partial(side, "a"), partial(side, "b"))
    assert order == ["a", "b", "b", "a", "a", "b"]
