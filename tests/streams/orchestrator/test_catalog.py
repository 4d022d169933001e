"""When the follower of the catalog has caught up, and how long it waits for a broker that says nothing."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from pml.processors.workflow import Catalog, Policy
from pml.schemas.catalog import CatalogRecord, PermissionRecord
from pml.schemas.codec import encode
from pml.schemas.errors import BrokerUnavailable
from pml.streams.orchestrator import catalog as catalog_module
from pml.streams.orchestrator.catalog import ASKED_AGAIN_S, SILENCE_S, CatalogFollower
from tests.fixtures.patience import PATIENCE_S
from tests.processors.session_world import catalog


class Silent:
    """A consumer whose questions time out, each after some time."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.takes_s = [0.0]
        self.now_s = 0.0

    async def start(self) -> None: ...

    def assign(self, _: Any) -> None: ...

    async def seek_to_beginning(self, _: Any) -> None: ...

    async def end_offsets(self, _: Any) -> dict[Any, int]:
        self.now_s += self.takes_s.pop(0) if len(self.takes_s) > 1 else self.takes_s[0]
        raise TimeoutError


async def follower(monkeypatch: pytest.MonkeyPatch) -> tuple[CatalogFollower, Silent]:
    silent = Silent()
    monkeypatch.setattr(catalog_module, "_now_s", lambda: silent.now_s)
    found = CatalogFollower({}, "catalog", catalog(), None, new_consumer=lambda **_: silent)
    await found.start()
    return found, silent


async def test_a_broker_that_is_silent_for_long_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    found, silent = await follower(monkeypatch)
    silent.takes_s = [1.5]
    while silent.now_s + 1.5 <= SILENCE_S:
        await found._listen()
    with pytest.raises(BrokerUnavailable, match="silent for 3"):
        await found._listen()


async def test_a_pause_of_this_process_is_no_silence_of_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    found, silent = await follower(monkeypatch)
    silent.takes_s = [600.0, 1.5]
    for _ in range(round((SILENCE_S - ASKED_AGAIN_S) / 1.5)):
        await found._listen()
    assert found.snapshot().switches["contact"] == "off"


class Giving:
    """A consumer that gives all its records at once."""

    def __init__(self, values: list[bytes]) -> None:
        self.values, self.at = values, 0
        self.asked = asyncio.Event()

    async def start(self) -> None: ...

    def assign(self, _: Any) -> None: ...

    async def seek_to_beginning(self, _: Any) -> None: ...

    async def getmany(self, pair: Any, **_: Any) -> dict[Any, list[Any]]:
        await asyncio.sleep(0.01)
        records = [SimpleNamespace(offset=n, key=b"k", value=value) for n, value in enumerate(self.values)]
        found, self.at = records[self.at :], len(records)
        return {pair: found}

    async def end_offsets(self, pairs: Any) -> dict[Any, int]:
        return dict.fromkeys(pairs, len(self.values))

    async def position(self, _: Any) -> int:
        self.asked.set()
        return self.at


async def test_it_has_caught_up_when_all_that_was_given_is_taken_in() -> None:
    """An unreadable record on the way takes as long as its dead letter."""
    burying, buried = asyncio.Event(), asyncio.Event()

    async def bury(*_: Any) -> None:
        burying.set()
        await buried.wait()

    data = PermissionRecord(file=catalog().permissions, hash="h")
    giving = Giving([b"{broken", encode(CatalogRecord(kind="permission", id="file", data=data))])
    empty = Catalog(Policy(hash_key=b""))
    follower = CatalogFollower({}, "catalog", empty, bury, new_consumer=lambda **_: giving)
    await follower.start()
    following = asyncio.create_task(follower.follow())
    await asyncio.wait_for(burying.wait(), PATIENCE_S)
    catching_up = asyncio.create_task(follower.catch_up())
    await asyncio.wait_for(giving.asked.wait(), PATIENCE_S)
    await asyncio.wait({catching_up}, timeout=0.05)
    assert not catching_up.done()
    buried.set()
    await asyncio.wait_for(catching_up, PATIENCE_S)
    assert follower.snapshot().permissions == catalog().permissions
    following.cancel()
    await asyncio.wait({following})
