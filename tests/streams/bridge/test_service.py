"""Partitions that come to a bridge that stops: what is lost is let go, and nothing is recovered any more."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from aiokafka import TopicPartition

from pml.schemas.topics import Topics
from pml.streams.bridge.clients import Clients
from pml.streams.bridge.dispatcher import Dispatcher
from pml.streams.bridge.partitions import Partitions
from pml.streams.bridge.service import CallService

LOST, KEPT = "lost", "kept"


class Told:
    """Consumer, partitions and dispatcher: what they were asked for."""

    def __init__(self) -> None:
        self.paused: list[Any] = []
        self.let_go: list[Any] = []

    def service(self, tasks: asyncio.TaskGroup) -> CallService:
        consumer = SimpleNamespace(
            subscribe=lambda topics, listener: None, pause=lambda *pairs: self.paused.extend(pairs)
        )
        partitions = SimpleNamespace(all=list, owned=list, assign=lambda numbers: ([KEPT], [LOST]))
        return CallService(
            Topics(),
            cast(Clients, SimpleNamespace(consumer=consumer, letters=None, tails=None)),
            cast(Partitions, partitions),
            cast(Dispatcher, SimpleNamespace(on_ended=None, let_go=self.let_go.append)),
            tasks,
        )


async def test_a_bridge_that_has_stopped_recovers_nothing_when_partitions_come() -> None:
    told, stop = Told(), asyncio.Event()
    stop.set()
    async with asyncio.TaskGroup() as tasks:
        service = told.service(tasks)
        await service.run(stop)
    pair = TopicPartition("pml.tool-calls", 3)
    await service.on_partitions_assigned([pair])
    assert (told.paused, told.let_go) == ([pair], [LOST])
    assert not service.recovered.is_set()
