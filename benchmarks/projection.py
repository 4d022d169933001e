"""`projection`: the fold of the log into metrics, beside a plain aiokafka loop that only decodes.

Both read the same records from the same topic with the same consumer settings. The whole agent is the worker
`metrics` in a process of its own on the same records, timed between its first and last write of the table.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import orjson
from aiokafka import AIOKafkaConsumer, TopicPartition

from benchmarks.figures import Bound, Figure
from benchmarks.history import history
from benchmarks.metrics_worker import worker_events_per_s
from benchmarks.plan import Plan, in_turns
from benchmarks.stack import bench_settings, broker, with_prefix
from pml.schemas.codec import encode
from pml.schemas.events import Event
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.connection import client_options, producer_options
from pml.streams.log.append import Appender, Outgoing, cut
from pml.streams.log.reader import event_headers
from pml.streams.projections.metrics import PartitionMetrics
from pml.streams.settings import Settings
from pml.streams.sources import opened
from pml.streams.topics import ensure_topics

EVENTS = 60_000
FOLD_BOUND = Bound("at least", 0.5)
POLL_MS = 200

Look = Callable[[int, list[Any]], None]


async def measure(plan: Plan) -> Sequence[Figure]:
    """Decoding, folding and the whole agent in every round."""
    plan.say(f"deciding {EVENTS:,} events")
    log = await asyncio.to_thread(history, EVENTS, plan.seed)
    records = {number: [outgoing(event) for event in events] for number, events in log.items()}
    decode: list[float] = []
    fold: list[float] = []
    agent: list[float] = []
    async with broker(bench_settings(plan.folder)) as settings:
        await write(settings, records)
        await _decode_all(settings)  # the broker's files and our code are warm after that
        for number in range(plan.rounds):
            plan.say(f"round {number + 1} of {plan.rounds}")
            await in_turns(
                number,
                partial(_keep, decode, partial(_decode_all, settings)),
                partial(_keep, fold, partial(_fold_all, settings)),
                partial(_keep, agent, partial(_agent, settings, records)),
            )
    return _figures(fold, agent, decode)


def outgoing(event: Event) -> Outgoing:
    """An event as the orchestrator writes it."""
    key = f"{event.tenant}/{event.session_id}".encode()
    return Outgoing(key, encode(event), event_headers(event))


async def write(settings: Settings, records: Mapping[int, Sequence[Outgoing]]) -> None:
    """Make the topics of these settings and append all records, each at its offset."""
    await ensure_topics(settings)
    appender = Appender(producer_options(settings))
    await appender.start()
    try:
        for partition, lines in records.items():
            base = 0
            for batch in cut(lines):
                await appender.append(settings.topics.events, partition, base, batch)
                base += len(batch)
    finally:
        await appender.stop()


async def read_per_s(settings: Settings, look: Look) -> float:
    """Read the whole log, hand over the records of each poll by partition; records a second."""
    pairs = [TopicPartition(settings.topics.events, number) for number in range(SESSION_PARTITIONS)]
    consumer = AIOKafkaConsumer(
        **client_options(settings), enable_auto_commit=False, auto_offset_reset="earliest"
    )
    async with opened(consumer, settings):
        total = left = sum((await consumer.end_offsets(pairs)).values())
        gc.collect()
        began = time.perf_counter()
        consumer.assign(pairs)
        while left:
            for pair, records in (await consumer.getmany(timeout_ms=POLL_MS)).items():
                look(pair.partition, records)
                left -= len(records)
        return float(total / (time.perf_counter() - began))


async def _decode_all(settings: Settings) -> float:
    def look(_: int, records: list[Any]) -> None:
        for record in records:
            orjson.loads(record.value)

    return await read_per_s(settings, look)


async def _fold_all(settings: Settings) -> float:
    states: dict[int, PartitionMetrics] = {}

    def look(partition: int, records: list[Any]) -> None:
        states.setdefault(partition, PartitionMetrics()).fold(records)

    return await read_per_s(settings, look)


async def _agent(settings: Settings, records: Mapping[int, Sequence[Outgoing]]) -> float:
    """On topics of its own, so that its group and its table begin empty."""
    own = with_prefix(settings)
    await write(own, records)
    return await worker_events_per_s(own, sum(map(len, records.values())))


async def _keep(values: list[float], measured: Callable[[], Any]) -> None:
    values.append(await measured())


def _figures(fold: list[float], agent: list[float], decode: list[float]) -> list[Figure]:
    return [
        Figure(
            "fold",
            "events/s",
            tuple(fold),
            tuple(decode),
            FOLD_BOUND,
            "read and fold ÷ read and orjson.loads; the fold decodes only the types that add something",
        ),
        Figure(
            "whole agent",
            "events/s",
            tuple(agent),
            tuple(decode),
            note="the worker `metrics` with Faust, its table and its changelog ÷ read and orjson.loads",
        ),
    ]
