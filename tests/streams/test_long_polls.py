"""Fetches wait long at the broker while nothing comes, and briefly while something does."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.consumer.fetcher import Fetcher
from aiokafka.protocol.fetch import FetchRequest

from pml.streams.local.polling import until
from pml.streams.long_polls import IDLE_AFTER_S, IDLE_WAIT_MS, LongPolls, poll_long_when_idle

BUSY_WAIT_MS = 20


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def partition(position: int | None = 0, *, paused: bool = False) -> Any:
    return SimpleNamespace(position=position, paused=paused, has_valid_position=position is not None)


class Planner:
    """What a fetcher has that is looked at; a plan is the wait it was made with."""

    def __init__(self, **states: Any) -> None:
        self._fetch_max_wait_ms = BUSY_WAIT_MS
        self.states = states
        self.tps = states.keys()

    def _get_actions_per_node(self, assignment: Any) -> int:
        return self._fetch_max_wait_ms

    def state_value(self, name: str) -> Any:
        return self.states[name]


def waits(planner: Planner, clock: Clock) -> Any:
    polls = LongPolls(planner, clock)
    return lambda: polls.plan(planner)


def test_a_fetch_waits_long_once_nothing_has_moved_for_a_second() -> None:
    planner, clock = Planner(a=partition(5), b=partition(7)), Clock()
    wait_ms = waits(planner, clock)
    assert wait_ms() == BUSY_WAIT_MS
    clock.now_s += IDLE_AFTER_S / 2
    assert wait_ms() == BUSY_WAIT_MS
    clock.now_s += IDLE_AFTER_S / 2
    assert wait_ms() == IDLE_WAIT_MS


def test_what_moves_is_fetched_with_short_waits_at_once() -> None:
    planner, clock = Planner(a=partition(5), b=partition(7)), Clock()
    wait_ms = waits(planner, clock)
    wait_ms()
    clock.now_s += IDLE_AFTER_S
    assert wait_ms() == IDLE_WAIT_MS
    planner.states["b"].position = 8
    assert wait_ms() == BUSY_WAIT_MS
    clock.now_s += IDLE_AFTER_S
    assert wait_ms() == IDLE_WAIT_MS


@pytest.mark.parametrize("left_out", [partition(7, paused=True), partition(None)])
def test_while_a_partition_is_left_out_no_fetch_waits_long(left_out: Any) -> None:
    planner, clock = Planner(a=partition(5), b=left_out), Clock()
    wait_ms = waits(planner, clock)
    for _ in range(3):
        assert wait_ms() == BUSY_WAIT_MS
        clock.now_s += IDLE_AFTER_S
    planner.states["b"] = partition(7)
    assert wait_ms() == BUSY_WAIT_MS
    clock.now_s += IDLE_AFTER_S
    assert wait_ms() == IDLE_WAIT_MS


@asynccontextmanager
async def consumer_of(kafka: str, topic: str) -> AsyncIterator[tuple[Any, list[int]]]:
    """A consumer of one partition that polls long when idle, and the waits of its fetches so far."""
    consumer = AIOKafkaConsumer(bootstrap_servers=kafka, fetch_max_wait_ms=BUSY_WAIT_MS)
    await consumer.start()
    send, fetches = consumer._client.send, []

    async def watched(node: Any, request: Any, **options: Any) -> Any:
        if isinstance(request, FetchRequest):
            fetches.append(request._max_wait_ms)
        return await send(node, request, **options)

    consumer._client.send = watched
    poll_long_when_idle(consumer)
    consumer.assign([TopicPartition(topic, 0)])
    try:
        yield consumer, fetches
    finally:
        await consumer.stop()


async def test_an_idle_consumer_asks_seldom_and_gets_the_first_record_at_once(kafka: str) -> None:
    topic = f"long-polls-{uuid4().hex}"
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka)
    await admin.start()
    await admin.create_topics([NewTopic(topic, 1, 1)])
    await admin.close()
    async with (
        consumer_of(kafka, topic) as (consumer, fetches),
        AIOKafkaProducer(bootstrap_servers=kafka) as producer,
    ):
        waiting = asyncio.create_task(consumer.getone())
        assert await until(lambda: fetches[-1:] == [IDLE_WAIT_MS], 0.01, 20)
        assert BUSY_WAIT_MS in fetches
        await producer.send_and_wait(topic, b"first", partition=0)
        assert (await waiting).value == b"first"
        seen = len(fetches)
        waiting = asyncio.create_task(consumer.getone())
        assert await until(lambda: BUSY_WAIT_MS in fetches[seen - 1 :], 0.01, 20)
        await producer.send_and_wait(topic, b"second", partition=0)
        assert (await waiting).value == b"second"


def test_aiokafka_s_fetcher_still_plans_as_is_relied_on() -> None:
    plan = inspect.getsource(Fetcher._get_actions_per_node)
    assert "FetchRequest(\n                self._fetch_max_wait_ms," in plan
    assert "for tp in assignment.tps" in plan
    assert "self._get_actions_per_node(assignment)" in inspect.getsource(Fetcher._fetch_requests_routine)
