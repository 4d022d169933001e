"""Progress rises strictly, and work that nobody waits for any more ends in peace."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from pml.streams.mcp_server.apart import apart
from pml.streams.mcp_server.progress import telling
from tests.fixtures.patience import PATIENCE_S


class Client:
    """Takes progress, at its own pace."""

    def __init__(self) -> None:
        self.told: list[tuple[float, float | None, str | None]] = []
        self.free = asyncio.Event()
        self.free.set()

    async def report(self, progress: float, total: float | None, message: str | None) -> None:
        await self.free.wait()
        self.told.append((progress, total, message))


async def test_steps_rise_strictly_and_the_last_is_told() -> None:
    client = Client()
    async with telling(client.report) as progress:
        for ended in (0, 1, 1, 3, 2, 3):
            progress.tell(ended, 4, 1)
            await asyncio.sleep(0)
        progress.tell(4, 4, 2)

    steps = [step for step, _, _ in client.told]
    assert steps == sorted(set(steps))
    assert client.told[-1] == (4, 4, "4 of 4 tasks ended, 2 served early")


async def test_a_slow_client_is_told_the_furthest_only() -> None:
    client = Client()
    client.free.clear()
    async with telling(client.report) as progress:
        progress.tell(1, 9, 0)
        await asyncio.sleep(0)
        for ended in range(2, 9):
            progress.tell(ended, 9, 0)
        client.free.set()

    assert [step for step, _, _ in client.told] == [1, 8]


async def test_a_total_that_is_not_known_yet_is_no_less_than_what_ended() -> None:
    client = Client()
    async with telling(client.report) as progress:
        progress.tell(1, 0, 0)

    assert client.told[0][:2] == (1, 1)


async def test_a_client_that_takes_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pml.streams.mcp_server.progress.FLUSH_S", 0.01)
    client = Client()
    client.free.clear()
    async with telling(client.report) as progress:
        progress.tell(1, 1, 0)

    assert client.told == []


async def test_work_that_is_cancelled_closes_what_it_opened() -> None:
    begun, closed = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        try:
            begun.set()
            await asyncio.sleep(60)
        finally:
            # In a scope of anyio that is cancelled this await would be cancelled as well.
            await asyncio.sleep(0.01)
            closed.set()

    async with anyio.create_task_group() as group:
        group.start_soon(apart, work())
        await begun.wait()
        group.cancel_scope.cancel()
    await asyncio.wait_for(closed.wait(), PATIENCE_S)


async def test_work_gives_what_it_comes_to() -> None:
    async def seven() -> int:
        return 7

    async def wrong() -> int:
        raise KeyError("x")

    assert await apart(seven()) == 7
    with pytest.raises(KeyError):
        await apart(wrong())
