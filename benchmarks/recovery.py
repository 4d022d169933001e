"""What taking a partition over costs: 1,000 sessions in its table, 10,000 events behind its marker.

The orchestrator's own take-over, on a real log: append the term, fold the log from the marker, rebuild what
is stale, read the catalog, send the calls of all live sessions. The baseline reads and decodes these events.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiokafka import AIOKafkaConsumer, TopicPartition

from benchmarks.history import HASH_KEY, Inputs, LiveSession, catalog
from benchmarks.plan import Plan, in_turns
from benchmarks.projection import outgoing
from pml.processors.workflow import definition_record
from pml.schemas.events import Event
from pml.schemas.topics import Topics
from pml.streams.connection import client_options, producer_options
from pml.streams.log.append import Appender, Outgoing, cut
from pml.streams.log.recovery import Marker, taken_record
from pml.streams.log.tail import Tails
from pml.streams.orchestrator.catalog import CatalogFollower
from pml.streams.orchestrator.partition import Partition
from pml.streams.orchestrator.payloads import PayloadCache
from pml.streams.orchestrator.shell import Shell
from pml.streams.orchestrator.table import (
    Life,
    PartitionTable,
    definition_key,
    life_key,
    marker_key,
    write_marker,
    write_session,
)
from pml.streams.orchestrator.takeover import take_over
from pml.streams.settings import Settings
from pml.streams.sources import opened
from pml.streams.topics import ensure_topics

PARTITION = 0
SESSIONS = 1_000
# Of each session before the marker: in the middle of its first run.
EVENTS_BEFORE = 15
EVENTS_BEHIND = 10_000
POLL_MS = 200


@dataclass(slots=True)
class Measured:
    """One value a round, in seconds; how many of the sessions lived."""

    recovered_s: list[float] = field(default_factory=list)
    plain_s: list[float] = field(default_factory=list)
    live: int = 0


@dataclass(slots=True)
class Scene:
    """A partition as its last owner left it: log, inputs, table, and the log offset of its marker."""

    log: list[Outgoing]
    inputs: Inputs
    table: dict[bytes, bytes]
    marker: int


async def measure_recovery(settings: Settings, plan: Plan) -> Measured:
    """Take the partition over and read it plainly in every round."""
    plan.say(f"deciding {SESSIONS * EVENTS_BEFORE + EVENTS_BEHIND:,} events of {SESSIONS:,} sessions")
    scene = await asyncio.to_thread(build, settings.topics, plan.seed)
    await _write(settings, scene)
    measured = Measured()
    async with _shell(settings) as shell:

        async def recover() -> None:
            partition = Partition(
                PARTITION, shell, PartitionTable(dict(scene.table), PARTITION), _pass, _never
            )
            began = time.perf_counter()
            await take_over(partition)
            measured.recovered_s.append(time.perf_counter() - began)
            measured.live = sum(1 for _ in partition.states.live())

        async def read() -> None:
            measured.plain_s.append(await _read_plainly(settings, scene))

        await recover()  # code and the broker's files are warm after that
        measured.recovered_s.clear()
        for number in range(plan.rounds):
            plan.say(f"recovery: round {number + 1} of {plan.rounds}")
            await in_turns(number, recover, read)
    return measured


def build(topics: Topics, seed: int) -> Scene:
    """Sessions that take turns, decided by the core itself; the table as it was at the marker."""
    drawn, snapshot, inputs = random.Random(seed), catalog(), Inputs(topics, PARTITION)
    now_ms = time.time_ns() // 1_000_000
    sessions = list[LiveSession]()
    while len(sessions) < SESSIONS:
        name = f"ses_{drawn.getrandbits(64):016x}"
        session = LiveSession(name, snapshot, drawn, time_ms=now_ms, inputs=inputs)
        if session.partition == PARTITION:
            sessions.append(session)
    log, table = [taken_record(PARTITION, "before", 0, now_ms)], dict[bytes, bytes]()
    while len(log) < SESSIONS * EVENTS_BEFORE:
        _turn(sessions, log, table)
    scene = Scene(log, inputs, table, marker=len(log))
    for session in sessions:
        assert session.state is not None
        table[life_key(PARTITION, Life(session.key, session.state.epoch))] = write_session(session.state, 0)
    causes = {topic: len(records) - 1 for topic, records in inputs.records.items()}
    table[marker_key(PARTITION)] = write_marker(Marker(scene.marker, 0, causes))
    while len(log) < scene.marker + EVENTS_BEHIND:
        _turn(sessions, log, {})
    return scene


def _turn(sessions: Sequence[LiveSession], log: list[Outgoing], table: dict[bytes, bytes]) -> None:
    """One input of each session."""
    for session in sessions:
        if not session.ended:
            for event in session.step(len(log)):
                log.append(outgoing(event))
                if event.type == "run.started":
                    table[_definition(session, event)] = definition_record(event)


def _definition(session: LiveSession, event: Event) -> bytes:
    return definition_key(PARTITION, Life(session.key, event.epoch), event.run_id or "")


async def _write(settings: Settings, scene: Scene) -> None:
    """The log and its inputs, each record at its offset."""
    await ensure_topics(settings)
    appender = Appender(producer_options(settings))
    await appender.start()
    try:
        lines = {
            topic: [Outgoing(*record) for record in found] for topic, found in scene.inputs.records.items()
        }
        for topic, records in (*lines.items(), (settings.topics.events, scene.log)):
            base = 0
            for batch in cut(records):
                await appender.append(topic, PARTITION, base, batch)
                base += len(batch)
    finally:
        await appender.stop()


@asynccontextmanager
async def _shell(settings: Settings) -> AsyncIterator[Shell]:
    """What the orchestrator works with."""
    clients, producing, topics = client_options(settings), producer_options(settings), settings.topics
    tails = Tails(clients)
    shell = Shell(
        settings=settings,
        topics=topics,
        owner="measured",
        hash_key=HASH_KEY,
        log=Appender(producing),
        outbox=Appender(producing),
        tails=tails,
        payloads=PayloadCache(topics, tails, settings.orchestrator.payload_cache_bytes),
        catalog=CatalogFollower(clients, topics.catalog, catalog(), _never),
    )
    async with AsyncExitStack() as stack:
        for client in (shell.log, shell.outbox, shell.tails, shell.catalog):
            stack.push_async_callback(client.stop)
            await client.start()
        following = asyncio.create_task(shell.catalog.follow())
        stack.callback(following.cancel)
        yield shell


async def _read_plainly(settings: Settings, scene: Scene) -> float:
    """Seconds to read and decode what lies behind the marker."""
    pair = TopicPartition(settings.topics.events, PARTITION)
    consumer = AIOKafkaConsumer(**client_options(settings), enable_auto_commit=False)
    async with opened(consumer, settings):
        consumer.assign([pair])
        began = time.perf_counter()
        consumer.seek(pair, scene.marker)
        left = len(scene.log) - scene.marker
        while left > 0:
            for record in (await consumer.getmany(timeout_ms=POLL_MS)).get(pair, ()):
                orjson.loads(record.value)
                left -= 1
        return time.perf_counter() - began


def _pass(_: bool) -> None:
    """Nothing is read that could be paused."""


async def _never(*_: Any) -> None:
    raise AssertionError("a log that nobody else writes, and a catalog that is empty")
