"""Partitions that come and go: at the end of a bridge, and while it takes a record."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from aiokafka import TopicPartition

from pml.schemas.codec import encode
from pml.schemas.identifiers import session_key
from pml.schemas.topics import Topics
from pml.streams.bridge.claims import Claims
from pml.streams.bridge.clients import Clients
from pml.streams.bridge.dispatcher import Dispatcher
from pml.streams.bridge.partition import Partition
from pml.streams.bridge.partitions import Partitions
from pml.streams.bridge.service import CallService
from pml.streams.connection import partition_for
from pml.streams.log.append import Appender
from pml.streams.log.tail import Tails
from tests.fixtures.patience import PATIENCE_S
from tests.streams.bridge.running import run

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


class Log:
    """A consumer of one partition: five calls and, behind them, a record that nobody can read."""

    def __init__(self, pair: TopicPartition) -> None:
        session = next(f"s{n}" for n in range(999) if partition_for(session_key("local", f"s{n}")) == 0)
        values = [encode(run("a:b", call_id=f"call_{n}", session_id=session)) for n in range(5)]
        self.pair, self.at = pair, 0
        self.values = [*values, b"{broken"]

    def subscribe(self, topics: Any, listener: Any) -> None: ...

    def pause(self, *_: Any) -> None: ...

    def resume(self, *_: Any) -> None: ...

    def seek(self, _: Any, offset: int) -> None:
        self.at = offset

    async def commit(self, _: Any) -> None: ...

    async def getmany(self, **_: Any) -> dict[TopicPartition, list[Any]]:
        await asyncio.sleep(0.001)
        records = [
            SimpleNamespace(offset=n, value=value, key=b"k", topic=self.pair.topic, partition=0)
            for n, value in enumerate(self.values)
        ]
        found, self.at = records[self.at :], len(records)
        return {self.pair: found}


class Calls:
    """Takes calls, and ends none of them."""

    running, waiting, answered = 0, 0, 0

    def answer_overdue(self) -> None: ...

    def run_call(self, partition: Partition, call: Any) -> None:
        known = partition.calls.get(call.run.call_id)
        partition.take(call) if known is None else partition.attach(known, call.offset)


async def test_a_dead_letter_that_outlasts_a_rebalance_passes_over_no_call_that_runs() -> None:
    pair = TopicPartition("pml.tool-calls", 0)
    burying, buried, stop = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def bury(*_: Any) -> None:
        burying.set()
        await buried.wait()

    async def recover(partition: Partition) -> int:
        partition.begin(0, [])
        return 0

    log, letters = Log(pair), SimpleNamespace(send=bury)
    partitions = Partitions(lambda n: Partition(n, Claims("claims", n, "me", Appender({}), Tails({})), 256))
    clients = SimpleNamespace(consumer=log, letters=letters, tails=None)
    async with asyncio.TaskGroup() as tasks:
        service = CallService(Topics(), cast(Clients, clients), partitions, cast(Dispatcher, Calls()), tasks)
        service._recovery = cast(Any, SimpleNamespace(recover=recover))
        service._finish = cast(Any, lambda: asyncio.sleep(0))  # type: ignore[method-assign]
        await service.on_partitions_assigned([pair])
        await asyncio.wait_for(service.recovered.wait(), PATIENCE_S)
        running = tasks.create_task(service.run(stop))
        await asyncio.wait_for(burying.wait(), PATIENCE_S)
        partition = partitions.get(0)
        assert partition is not None
        before = partition.watermark
        await service.on_partitions_revoked([pair])
        await service.on_partitions_assigned([pair])
        async with asyncio.timeout(PATIENCE_S):
            while partition.watermark is before:
                await asyncio.sleep(0.001)
        buried.set()
        async with asyncio.timeout(PATIENCE_S):
            while partition.watermark.position < len(log.values):
                await asyncio.sleep(0.001)
        stop.set()
        await running
    assert (len(partition.calls), partition.watermark.committable) == (5, 0)
