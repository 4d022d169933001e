"""An installation of its own on the broker, a bridge that answers everything, and what must hold."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaTimeoutError

from pml.schemas.calls import CallEnded, CallError, CallRun, ToolResult
from pml.schemas.catalog import CatalogRecord, PermissionRecord
from pml.schemas.codec import decode_call, encode
from pml.schemas.commands import Command, RunStart
from pml.schemas.events import Event
from pml.schemas.identifiers import session_key
from pml.schemas.times import to_rfc3339
from pml.schemas.workflow import Workflow
from pml.streams.connection import client_options, partition_for, producer_options
from pml.streams.health import Health
from pml.streams.log.reader import counted, counted_event
from pml.streams.orchestrator.role import Orchestrator
from pml.streams.settings import Settings
from pml.streams.topics import ensure_topics
from pml.streams.worker import ensure_table
from tests.fixtures.patience import PATIENCE_S
from tests.processors.session_world import catalog


def workflow(layers: int = 2, tool: str = "files:read_file") -> dict[str, Any]:
    """A chain: each task reads what the one before it gave."""
    tasks: list[dict[str, Any]] = []
    for number in range(1, layers + 1):
        before = {"type": "reference", "expression": f"n{number - 1}.text"} if number > 1 else "start.txt"
        tasks.append({"id": f"n{number}", "tool": tool, "arguments": {"path": before}})
    return {"version": 1, "name": "chain", "tasks": tasks}


async def until(condition: Callable[[], Awaitable[Any]], what: str) -> Any:
    """Wait for a condition; fail with a sentence once patience is over."""
    give_up = time.monotonic() + PATIENCE_S
    while time.monotonic() < give_up:
        found = await condition()
        if found:
            return found
        await asyncio.sleep(0.05)
    raise AssertionError(f"waited {PATIENCE_S:.0f} s for {what}")


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Work that goes on beside the body; where it fails, the body is ended and its error told."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(work)
        try:
            yield
        finally:
            task.cancel()


# Nothing runs into a time-out that no test asks for, however slow the machine is.
UNHURRIED = {"task_s": 2 * PATIENCE_S, "queue_s": 2 * PATIENCE_S, "run_s": 2 * PATIENCE_S}


class Installation:
    """Topics under a prefix of their own; what a test says of time-outs goes before."""

    def __init__(self, kafka: str, folder: Path, **timeouts: float) -> None:
        self.settings = Settings.load(
            data_dir=folder,
            kafka={
                "bootstrap_servers": kafka,
                "topic_prefix": f"o{uuid.uuid4().hex[:10]}.",
                "session_timeout_s": 6,
                "heartbeat_s": 0.5,
            },
            timeouts=UNHURRIED | timeouts,
        )
        self.topics = self.settings.topics
        self.producer: Any = None
        self._watch: Any = None
        self._seen: dict[TopicPartition, list[Any]] = defaultdict(list)
        self._partitions = {spec.name: spec.partitions for spec in self.topics.specs()}

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Installation]:
        """Topics made, catalog published."""
        await ensure_topics(self.settings)
        self.producer = AIOKafkaProducer(**producer_options(self.settings))
        pairs = [TopicPartition(name, n) for name, count in self._partitions.items() for n in range(count)]
        self._watch = AIOKafkaConsumer(**client_options(self.settings), auto_offset_reset="earliest")
        async with self.producer, self._watch:
            self._watch.assign(pairs)
            async with beside(self._collect()):
                await self.publish_catalog()
                yield self

    async def publish_catalog(self) -> None:
        known = catalog()
        records = [CatalogRecord(kind="tool", id=name, data=data) for name, data in known.servers.items()]
        permissions = PermissionRecord(file=known.permissions, hash="h")
        records.append(CatalogRecord(kind="permission", id="file", data=permissions))
        for record in records:
            await self.producer.send_and_wait(self.topics.catalog, encode(record), key=record.key)

    async def start_run(self, session: str, command_id: str = "", definition: Any = None) -> None:
        command = Command(
            type="run.start",
            command_id=command_id or f"cmd_{session}",
            session_id=session,
            run_id=f"run_{command_id or session}",
            data=RunStart(workflow=Workflow.model_validate(definition or workflow())),
        )
        await self.send(self.topics.commands, session, encode(command))

    async def answer(self, call: CallRun, error: CallError | None = None) -> None:
        """What a bridge says when a call ended."""
        ended = CallEnded(
            call_id=call.call_id,
            tenant=call.tenant,
            session_id=call.session_id,
            status="error" if error else "ok",
            result=None if error else ToolResult(structured={"text": f"after {call.arguments}"[:60]}),
            error=error,
            started_at=to_rfc3339(time.time_ns() // 1_000_000),
            duration_ms=3.0,
        )
        await self.send(self.topics.tool_outcomes, call.session_id, encode(ended))

    async def send(self, topic: str, session: str, value: bytes | None, **options: Any) -> Any:
        key = session_key("local", session)
        return await self.producer.send_and_wait(topic, value, key=key, **options)

    async def records(self, topic: str) -> list[Any]:
        """Everything in a topic up to its present end, partition by partition."""
        pairs = [TopicPartition(topic, number) for number in range(self._partitions[topic])]
        ends = await self._watch.end_offsets(pairs)

        async def read() -> bool:
            return all(len(self._seen[pair]) >= ends[pair] for pair in pairs)

        await until(read, f"everything of {topic}")
        return [record for pair in pairs for record in self._seen[pair]]

    async def _collect(self) -> None:
        while True:
            for pair, records in (await self._watch.getmany(timeout_ms=200)).items():
                self._seen[pair] += records

    async def changelog(self) -> list[Any]:
        """The records of the orchestrator's table, read by a consumer of their own."""
        topic = f"{self.settings.group('orchestrator')}-sessions-changelog"
        found: list[Any] = []
        options = client_options(self.settings) | {"auto_offset_reset": "earliest", "group_id": None}
        async with AIOKafkaConsumer(topic, **options) as consumer:
            ends = await consumer.end_offsets(list(consumer.assignment()))
            while any([await consumer.position(pair) < end for pair, end in ends.items()]):
                for records in (await consumer.getmany(timeout_ms=200)).values():
                    found += records
        return found

    async def events(self, session: str | None = None) -> list[Event]:
        """The counted events (of one session), without those of partitions."""
        records = await self.records(self.topics.events)
        events = [counted_event(record) for record in records if counted(record) and record.key]
        return [event for event in events if session in (None, event.session_id)]

    async def types(self, session: str) -> list[str]:
        return [event.type for event in await self.events(session)]

    async def calls(self) -> list[CallRun]:
        decoded = [decode_call(record.value) for record in await self.records(self.topics.tool_calls)]
        return [call for call in decoded if isinstance(call, CallRun)]

    async def wait_for(self, session: str, kind: str, count: int = 1) -> list[Event]:
        """The session's events once so many of this type are among them; else what it has is told."""

        async def there() -> list[Event]:
            events = await self.events(session)
            return events if sum(event.type == kind for event in events) >= count else []

        try:
            found: list[Event] = await until(there, f"{kind} of {session}")
        except AssertionError as late:
            late.add_note(f"{session} has {await self.types(session)}")
            raise
        return found

    @asynccontextmanager
    async def orchestrator(self, **options: Any) -> AsyncIterator[Running]:
        """The role, in this process, ready."""
        running = Running(self.settings)
        await running.start()
        try:
            yield running
        finally:
            await running.stop()

    @asynccontextmanager
    async def bridge(self) -> AsyncIterator[Counter[str]]:
        """Answers each call; how often each call id was asked for."""
        asked: Counter[str] = Counter()
        async with beside(self._answer_all(asked)):
            yield asked

    async def _answer_all(self, asked: Counter[str]) -> None:
        consumer = AIOKafkaConsumer(
            self.topics.tool_calls, **client_options(self.settings), auto_offset_reset="earliest"
        )
        async with consumer:
            async for record in consumer:
                call = decode_call(record.value)
                if isinstance(call, CallRun):
                    asked[call.call_id] += 1
                    if asked[call.call_id] == 1:
                        await self._answer_surely(call)

    async def _answer_surely(self, call: CallRun) -> None:
        """A broker that is away costs time; an outcome that is said twice costs nothing."""
        with suppress(KafkaTimeoutError):
            return await self.answer(call)
        return await self._answer_surely(call)

    async def check(self) -> None:
        """What must hold always: no gap in `seq`, inputs decided once, no call out of thin air."""
        records = [r for r in await self.records(self.topics.events) if counted(r) and r.key]
        events = [counted_event(record) for record in records]
        sessions: dict[tuple[str, int], list[int]] = defaultdict(list)
        places: dict[Any, list[int]] = defaultdict(list)
        for record, event in zip(records, events, strict=True):
            assert record.key == session_key(event.tenant, event.session_id)
            assert record.partition == partition_for(record.key)
            sessions[event.session_id, event.epoch].append(event.seq)
            assert event.cause is not None
            places[event.cause.topic, event.cause.partition, event.cause.offset].append(event.offset)
        for life, numbers in sessions.items():
            assert numbers == list(range(len(numbers))), life
        for cause, offsets in places.items():
            assert offsets == list(range(offsets[0], offsets[0] + len(offsets))), cause
        started = {event.data.call_id for event in events if hasattr(event.data, "touches")}
        assert {call.call_id for call in await self.calls()} <= started


class Running:
    """The role as a task of this process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stop = asyncio.Event()
        self.health = Health(settings.data_dir, "orchestrator")
        self.role = Orchestrator(settings, self.health)
        self.task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await ensure_table(self._settings, "orchestrator")
        self.task = asyncio.create_task(self.role.run(self._stop))

        async def ready() -> bool:
            assert self.task is not None
            if self.task.done():
                self.task.result()
            return self.health.record.state == "ready"

        await until(ready, "the orchestrator to be ready")

    async def stop(self) -> None:
        self._stop.set()
        assert self.task is not None
        await self.task
