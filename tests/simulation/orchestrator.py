"""The orchestrator of one process: the real shell and ownership over simulated clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from pml.processors.workflow import Catalog
from pml.streams.log.append import Appender
from pml.streams.log.tail import Tails
from pml.streams.orchestrator.catalog import CatalogFollower
from pml.streams.orchestrator.ownership import Ownership
from pml.streams.orchestrator.payloads import PayloadCache
from pml.streams.orchestrator.shell import Shell
from pml.streams.orchestrator.table import SessionTable
from pml.streams.settings import Settings
from tests.simulation.clients import Consumer, Producer
from tests.simulation.faust_double import FaustDouble
from tests.simulation.groups import Group
from tests.simulation.loop import PROCESS
from tests.simulation.network import Network


class Following(CatalogFollower):
    """The real follower; what it gave for a decision is remembered, so that a check can ask for it."""

    given: list[tuple[float, Catalog]]
    last: Catalog | None = None

    def snapshot(self) -> Catalog:
        """As the follower's own."""
        found = super().snapshot()
        if self.last is None or found != self.last:
            self.last = found
        self.given.append((asyncio.get_running_loop().time(), self.last))
        return found


@dataclass
class Place:
    """What an orchestrator is put into."""

    settings: Settings
    network: Network
    group: Group
    random: Random
    empty: Catalog
    now_ms: Callable[[], int]
    fail: Callable[[BaseException], None]


class OrchestratorProcess:
    """One worker with the role `orchestrator`, to be run in a process of its own."""

    def __init__(self, place: Place, given: list[tuple[float, Catalog]]) -> None:
        self._place = place
        self._given = given
        self.ownership: Ownership | None = None
        self.shell: Shell | None = None

    async def run(self) -> None:
        """Work until the process dies."""
        place = self._place
        self.shell = shell = self._shell()
        for client in (shell.log, shell.outbox, shell.tails, shell.catalog):
            await client.start()
        following = asyncio.ensure_future(shell.catalog.follow())
        following.add_done_callback(self._ended)
        app = FaustDouble(place.network, place.random, place.settings.topics, place.group)
        faust: Any = app
        self.ownership = Ownership(faust, shell, SessionTable(faust), place.fail, lambda: None)
        app.partition_of = self.ownership.get
        self.ownership.connect()
        app.start()
        await asyncio.Event().wait()

    def _shell(self) -> Shell:
        place, topics = self._place, self._place.settings.topics
        producer, consumer = partial(Producer, place.network), partial(Consumer, place.network)
        timeout_s = place.settings.orchestrator.append_timeout_s
        tails = Tails({}, new_consumer=consumer)
        catalog = Following({}, topics.catalog, place.empty, self._pass_over, new_consumer=consumer)
        catalog.given = self._given
        process = PROCESS.get()
        return Shell(
            settings=place.settings,
            topics=topics,
            owner=process.name if process else "",
            hash_key=place.empty.policy.hash_key,
            log=Appender({}, timeout_s=timeout_s, new_producer=producer),
            outbox=Appender({}, timeout_s=timeout_s, new_producer=producer),
            tails=tails,
            payloads=PayloadCache(topics, tails, place.settings.orchestrator.payload_cache_bytes),
            catalog=catalog,
            now_ms=place.now_ms,
        )

    async def _pass_over(self, record: Any, error: Any) -> None:
        assert self.shell is not None
        await self.shell.bury(record, "decode", error)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._place.fail(error)
