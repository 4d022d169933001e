"""Calls that come again while they are being let go, or answered."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from pml.schemas.calls import CallEnded
from pml.streams.bridge.admission import Admission
from pml.streams.bridge.call import Call, ended
from pml.streams.bridge.claims import Claims
from pml.streams.bridge.dispatcher import Dispatcher
from pml.streams.bridge.partition import Partition
from pml.streams.log.append import Appender
from pml.streams.log.tail import Tails
from tests.fixtures.patience import PATIENCE_S
from tests.streams.bridge.running import run


class Slow:
    """Runs calls; the first one hangs, and a server that is busy is slow to hear that it is cancelled."""

    def __init__(self) -> None:
        self.calls = 0
        self.began, self.cancelled, self.heard = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def run(self, call: Call, claims: Claims) -> CallEnded:
        self.calls += 1
        if self.calls > 1:
            return ended(call.run, "ok")
        self.began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            await self.heard.wait()
            raise
        raise AssertionError


class Broker:
    """Takes answers; while it is away, they wait."""

    def __init__(self) -> None:
        self.sent: list[CallEnded] = []
        self.asked, self.back = asyncio.Event(), asyncio.Event()
        self.back.set()

    async def send(self, outcome: CallEnded) -> None:
        self.asked.set()
        await self.back.wait()
        self.sent.append(outcome)


def new_partition() -> Partition:
    partition = Partition(0, Claims("claims", 0, "me", Appender({}), Tails({})), 8)
    partition.begin(0, [])
    return partition


def new_dispatcher(tasks: asyncio.TaskGroup, runner: Any, broker: Broker) -> Dispatcher:
    return Dispatcher(
        cast(Any, {"a": None}),
        Admission(4, 4, {"a": 4}),
        cast(Any, SimpleNamespace(lets=lambda _: True, refusal=lambda _: None)),
        runner=runner,
        outcomes=cast(Any, broker),
        tasks=tasks,
    )


async def test_a_call_that_comes_again_before_it_was_let_go_is_run_again() -> None:
    """The partition was lost and is ours again: nobody would answer a call that is being let go."""
    broker, runner = Broker(), Slow()
    partition, message = new_partition(), run("a:b")
    async with asyncio.TaskGroup() as tasks:
        dispatcher = new_dispatcher(tasks, runner, broker)
        dispatcher.run_call(partition, Call.of(message, 0, 0, 10))
        await asyncio.wait_for(runner.began.wait(), PATIENCE_S)
        partition.ready = False
        dispatcher.let_go(partition)
        await asyncio.wait_for(runner.cancelled.wait(), PATIENCE_S)
        partition.begin(0, [])
        dispatcher.run_call(partition, Call.of(message, 0, 0, 10))
        runner.heard.set()
        await asyncio.wait_for(broker.asked.wait(), PATIENCE_S)
    assert [(outcome.call_id, outcome.status) for outcome in broker.sent] == [(message.call_id, "ok")]
    assert (partition.watermark.committable, partition.calls) == (1, {})
    assert (dispatcher.running, dispatcher.waiting) == (0, 0)


async def test_a_call_that_is_being_answered_when_it_comes_again_is_not_run_again() -> None:
    """Its answer waits for the broker, through a rebalance that leaves us the partition."""
    calls: list[Call] = []
    broker = Broker()
    broker.back.clear()

    class NotStarted:
        async def run(self, call: Call, _: Claims) -> CallEnded:
            calls.append(call)
            return ended(call.run, "not_started" if len(calls) == 1 else "ok")

    partition, message = new_partition(), run("a:count")
    async with asyncio.TaskGroup() as tasks:
        dispatcher = new_dispatcher(tasks, NotStarted(), broker)
        dispatcher.run_call(partition, Call.of(message, 0, 0, 10))
        await asyncio.wait_for(broker.asked.wait(), PATIENCE_S)
        partition.ready = False
        dispatcher.let_go(partition)
        partition.begin(0, [])
        dispatcher.run_call(partition, Call.of(message, 0, 0, 10))
        broker.back.set()
    assert (len(calls), [outcome.status for outcome in broker.sent]) == (1, ["not_started"])
    assert (partition.watermark.committable, partition.calls) == (1, {})


async def test_a_call_that_is_being_refused_when_it_comes_again_is_refused_once() -> None:
    broker = Broker()
    broker.back.clear()
    partition, message = new_partition(), run("unknown:tool")
    async with asyncio.TaskGroup() as tasks:
        dispatcher = new_dispatcher(tasks, Slow(), broker)
        dispatcher.run_call(partition, Call.of(message, 0, 0, 10))
        dispatcher.let_go(partition)
        partition.begin(0, [])
        dispatcher.run_call(partition, Call.of(message, 0, 0, 10))
        await asyncio.wait_for(broker.asked.wait(), PATIENCE_S)
        broker.back.set()
    assert [outcome.error.code for outcome in broker.sent if outcome.error] == ["UNKNOWN_SERVER"]
    assert partition.watermark.committable == 1
