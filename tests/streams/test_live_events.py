"""One reader of the log for all who wait: who hears what, and when it reads at all."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiokafka import TopicPartition

from pml.schemas.errors import BrokerUnavailable, LogCorrupted
from pml.schemas.events import Event
from pml.schemas.identifiers import session_key
from pml.streams.live_events import LiveEvents
from tests.fixtures.patience import PATIENCE_S
from tests.streams.mcp_server.clients import settings_in


class Record:
    """A record of the log that counts."""

    def __init__(self, session: str, offset: int, value: bytes = b"{}", at: int | None = None) -> None:
        self.key, self.offset, self.value = session_key("local", session), offset, value
        self.headers = [("pml-offset", str(offset if at is None else at).encode())]


class Consumer:
    """Gives what is put into it; counts how many there are."""

    made = stopped = 0
    given: asyncio.Queue[Any]

    def __init__(self, **options: Any) -> None:
        type(self).made += 1
        self.topic = ""

    async def start(self) -> None: ...

    async def stop(self) -> None:
        type(self).stopped += 1

    async def topics(self) -> set[str]:
        return {"pml.events"}

    def assign(self, partitions: list[TopicPartition]) -> None:
        assert len(partitions) == 12

    async def seek_to_end(self) -> None: ...

    async def getmany(self, timeout_ms: int) -> dict[Any, list[Any]]:
        item = await type(self).given.get()
        if isinstance(item, Exception):
            raise item
        return {0: item}


@pytest.fixture
async def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    Consumer.given = asyncio.Queue()
    Consumer.made = Consumer.stopped = 0
    decoded = "pml.streams.live_events.counted_event"
    monkeypatch.setattr(decoded, decode)
    events = LiveEvents(settings_in(tmp_path), idle_s=0.0, new_consumer=Consumer)
    yield events
    await events.close()


def decode(record: Record) -> Any:
    if record.value == b"broken":
        raise LogCorrupted("not ours")
    return record.offset


async def test_each_hears_of_its_session_in_order_and_of_what_counts(live: LiveEvents) -> None:
    mine: list[Event] = []
    theirs: list[Event] = []
    async with live.watching("local", "a", mine.append), live.watching("local", "b", theirs.append):
        await Consumer.given.put(
            [Record("a", 1), Record("b", 2), Record("a", 3, at=2), Record("c", 4), Record("a", 5)]
        )
        await Consumer.given.put([Record("b", 6)])
        async with asyncio.timeout(PATIENCE_S):
            while theirs != [2, 6]:
                await asyncio.sleep(0)
        assert mine == [1, 5]
        assert Consumer.made == 1


async def test_it_stops_where_nobody_watches_and_begins_again(live: LiveEvents) -> None:
    for number in (1, 2):
        async with live.watching("local", "a", lambda event: None):
            pass
        await Consumer.given.put([])
        async with asyncio.timeout(PATIENCE_S):
            while Consumer.stopped < number:
                await asyncio.sleep(0)
    assert Consumer.made == 2


async def test_who_watches_is_told_that_no_more_comes(live: LiveEvents) -> None:
    async with live.watching("local", "a", lambda event: None) as watcher:
        await Consumer.given.put([Record("a", 1, b"broken")])
        with pytest.raises(LogCorrupted):
            await asyncio.wait_for(watcher.failed, PATIENCE_S)
    async with live.watching("local", "a", lambda event: None) as watcher:
        await Consumer.given.put(OSError("gone"))
        with pytest.raises(BrokerUnavailable):
            await asyncio.wait_for(watcher.failed, PATIENCE_S)
    async with live.watching("local", "a", lambda event: None):
        pass
    assert Consumer.made == 2


async def test_without_a_broker_it_says_so(tmp_path: Path) -> None:
    live = LiveEvents(settings_in(tmp_path))
    with pytest.raises(BrokerUnavailable):
        async with live.watching("local", "a", lambda event: None):
            pass
