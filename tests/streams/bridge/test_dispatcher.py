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


def new_partition() -> Partition:
    partition = Partition(0, Claims("claims", 0, "me", Appender({}), Tails({})), 8)
    partition.begin(0, [])
    return partition


def new_dispatcher(tasks: asyncio.TaskGroup, runner: Any, send: Any) -> Dispatcher:
    return Dispatcher(
        cast(Any, {"a": None}),
        Admission(4, 4, {"a": 4}),
        cast(Any, SimpleNamespace(lets=lambda _: True, refusal=lambda _: None)),
        runner=runner,
        outcomes=cast(Any, SimpleNamespace(send=send)),
        tasks=tasks,
    )


async def test_a_call_that_comes_again_before_it_was_let_go_is_run_again() -> None:
    """The partition was lost and is ours again: nobody would answer a call that is being let go."""
    sent: list[CallEnded] = []
    answered, runner = asyncio.Event(), Slow()

    async def send(outcome: CallEnded) -> None:
        sent.append(outcome)
        answered.set()

    partition, message = new_partition(), run("a:b")
    async with asyncio.TaskGroup() as tasks:
        dispatcher = new_dispatcher(tasks, runner, send)
        dispatcher.run_call(partition, Call.of(message, 0, 0, 10))
        await asyncio.wait_for(runner.began.wait(), PATIENCE_S)
        partition.ready = False
        dispatcher.let_go(partition)
        await asyncio.wait_for(runner.cancelled.wait(), PATIENCE_S)
        partition.begin(0, [])
        dispatcher.run_call(partition, Call.of(message, 0, 0, 10))
        runner.heard.set()
        await asyncio.wait_for(answered.wait(), PATIENCE_S)
    assert [(outcome.call_id, outcome.status) for outcome in sent] == [(message.call_id, "ok")]
    assert (partition.watermark.committable, partition.calls) == (1, {})
    assert (dispatcher.running, dispatcher.waiting) == (0, 0)


async def test_a_call_that_is_being_answered_when_it_comes_again_is_not_run_again() -> None:
    """Its answer waits for the broker, through a rebalance that leaves us the partition."""
    calls, sending, sendable = [], asyncio.Event(), asyncio.Event()
    sent: list[CallEnded] = []

    class NotStarted:
        async def run(self, call: Call, _: Claims) -> CallEnded:
            calls.append(call)
            return ended(call.run, "not_started" if len(calls) == 1 else "ok")

    async def send(outcome: CallEnded) -> None:
        sending.set()
        await sendable.wait()
        sent.append(outcome)

    partition, message = new_partition(), run("a:count")
    async with asyncio.TaskGroup() as tasks:
        dispatcher = new_dispatcher(tasks, NotStarted(), send)
        dispatcher.run_call(partition, Call.of(message, 0, 0, 10))
        await asyncio.wait_for(sending.wait(), PATIENCE_S)
        partition.ready = False
        dispatcher.let_go(partition)
        partition.begin(0, [])
        dispatcher.run_call(partition, Call.of(message, 0, 0, 10))
        sendable.set()
    assert (len(calls), [outcome.status for outcome in sent]) == (1, ["not_started"])
    assert (partition.watermark.committable, partition.calls) == (1, {})


async def test_a_call_that_is_being_refused_when_it_comes_again_is_refused_once() -> None:
    sending, sendable = asyncio.Event(), asyncio.Event()
    sent: list[CallEnded] = []

    async def send(outcome: CallEnded) -> None:
        sending.set()
        await sendable.wait()
        sent.append(outcome)

    partition, message = new_partition(), run("unknown:tool")
    async with asyncio.TaskGroup() as tasks:
        dispatcher = new_dispatcher(tasks, Slow(), send)
        dispatcher.run_call(partition, Call.of(message, 0, 0, 10))
        dispatcher.let_go(partition)
        partition.begin(0, [])
        dispatcher.run_call(partition, Call.of(message, 0, 0, 10))
        await asyncio.wait_for(sending.wait(), PATIENCE_S)
        sendable.set()
    assert [outcome.error.code for outcome in sent if outcome.error] == ["UNKNOWN_SERVER"]
    assert partition.watermark.committable == 1
