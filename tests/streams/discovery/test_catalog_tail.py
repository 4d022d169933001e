"""What a read that fails had read already comes again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError

from pml.schemas.errors import BrokerUnavailable
from pml.streams.discovery.catalog_tail import CatalogTail
from tests.fixtures.settings import folder_settings

RECORDS = 4


class Consumer:
    """Gives two records at a time, and fails once when it has given some."""

    def __init__(self, pair: Any, failure: BaseException | None) -> None:
        self.pair, self.failure, self.at, self.stopped = pair, failure, 0, False

    async def end_offsets(self, _: Any) -> dict[Any, int]:
        return {self.pair: RECORDS}

    async def position(self, _: Any) -> int:
        return self.at

    def resume(self, _: Any) -> None: ...

    def pause(self, _: Any) -> None: ...

    async def stop(self) -> None:
        self.stopped = True

    async def getmany(self, *_: Any, **__: Any) -> dict[Any, list[Any]]:
        if self.at and self.failure is not None:
            raise self.failure
        self.at += 2
        return {self.pair: [SimpleNamespace(offset=self.at - 2), SimpleNamespace(offset=self.at - 1)]}


@pytest.mark.parametrize(
    ("failure", "told"),
    [(KafkaConnectionError("gone"), BrokerUnavailable), (asyncio.CancelledError(), asyncio.CancelledError)],
)
async def test_a_read_that_fails_half_way_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException, told: type[BaseException]
) -> None:
    tail = CatalogTail(folder_settings(tmp_path, "127.0.0.1:1", "tail"))
    made: list[Consumer] = []

    async def connected(self: CatalogTail) -> Consumer:
        made.append(Consumer(self._pair, None if made else failure))
        return made[-1]

    monkeypatch.setattr(CatalogTail, "_connected", connected)
    with pytest.raises(told):
        await tail.read()
    news = await tail.read()
    assert ([record.offset for record in news.records], news.anew, news.whole) == ([0, 1, 2, 3], True, True)
    assert [consumer.stopped for consumer in made] == [True, False]
