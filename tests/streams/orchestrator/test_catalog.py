"""How long the follower of the catalog waits for a broker that says nothing, by a clock of the test's own."""

from __future__ import annotations

from typing import Any

import pytest

from pml.schemas.errors import BrokerUnavailable
from pml.streams.orchestrator import catalog as catalog_module
from pml.streams.orchestrator.catalog import ASKED_AGAIN_S, SILENCE_S, CatalogFollower
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
