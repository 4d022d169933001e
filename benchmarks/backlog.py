"""`backlog`: how fast the orchestrator gets through what piled up while it was away.

Commands lie in their topic before the worker `orchestrator` starts, a run of one call each. Whoever stands in
for the bridge answers each call at once, so each run is two inputs. Beside it a plain aiokafka echo finds as
many messages and decides nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import NewTopic

from benchmarks.echo_client import MODULE, VALUE
from benchmarks.figures import Figure, rate_between
from benchmarks.plan import Plan, in_turns
from benchmarks.round_trips import ENDS, ONE_CALL
from benchmarks.stack import bench_settings, beside_block, broker, program, with_prefix
from pml.schemas.calls import CallEnded, CallRun, ToolResult
from pml.schemas.catalog import CatalogRecord, PermissionRecord, ServerTools, Tool
from pml.schemas.codec import encode
from pml.schemas.commands import Command, RunStart
from pml.schemas.identifiers import DEFAULT_TENANT, session_key
from pml.schemas.permissions import PermissionFile
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.catalog_topic import publish
from pml.streams.client import new_id
from pml.streams.connection import bootstrap_servers, client_options, partition_for, producer_options
from pml.streams.local.services import Worker
from pml.streams.log.reader import counted, event_type
from pml.streams.settings import Settings
from pml.streams.sources import opened
from pml.streams.topics import admin_client, ensure_topics

RUNS = 10_000
# Its command and its call's outcome.
INPUTS_PER_RUN = 2
# Ten thousand runs take half a minute; a busy machine takes several.
TIMEOUT_S = 600.0
POLL_MS = 100
SERVER, TOOL = "noop", "read"
ANSWER = ToolResult(structured={"ok": True})

Record = tuple[bytes, bytes]


@dataclass(slots=True)
class Counted:
    """What came out: by the broker's clock how much was there when, and how many runs had ended."""

    steps: list[tuple[int, int]] = field(default_factory=list)
    ends: int = 0

    @property
    def records(self) -> int:
        """All that came out so far."""
        return self.steps[-1][1] if self.steps else 0

    def see(self, record: Any) -> None:
        """One more."""
        self.steps.append((record.timestamp, self.records + 1))


async def measure(plan: Plan) -> Sequence[Figure]:
    """The orchestrator and the echo, each with topics of its own, in every round."""
    inputs: list[float] = []
    events: list[float] = []
    echoed: list[float] = []
    async with broker(bench_settings(plan.folder)) as settings:
        for number in range(plan.rounds):
            plan.say(f"round {number + 1} of {plan.rounds}")
            await in_turns(
                number, partial(_decide_all, settings, inputs, events), partial(_echo_all, settings, echoed)
            )
    return [
        Figure(
            "inputs",
            "inputs/s",
            tuple(inputs),
            tuple(echoed),
            note=f"{RUNS:,} runs of one call, commands and outcomes ÷ messages that are echoed",
        ),
        Figure("events", "events/s", tuple(events), tuple(echoed)),
    ]


async def _decide_all(settings: Settings, inputs: list[float], events: list[float]) -> None:
    own = with_prefix(settings)
    await ensure_topics(own)
    for record in _catalog():
        await publish(own, record)
    await _send(own, own.topics.commands, _commands(RUNS))
    worker = Worker(own, ("orchestrator",))
    async with beside_block(_answer_calls(own)):
        await worker.start()
        try:
            found = await _read(own, own.topics.events, _see_event, lambda seen: seen.ends >= RUNS)
        finally:
            await worker.stop()
    per_s = rate_between(found.steps)
    events.append(per_s)
    inputs.append(per_s * RUNS * INPUTS_PER_RUN / found.records)


async def _echo_all(settings: Settings, echoed: list[float]) -> None:
    own, total = with_prefix(settings), RUNS * INPUTS_PER_RUN
    there, back = (own.kafka.topic_prefix + name for name in ("echo-there", "echo-back"))
    async with admin_client(own) as admin:
        factor = own.kafka.replication_factor
        await admin.create_topics([NewTopic(name, SESSION_PARTITIONS, factor) for name in (there, back)])
    await _send(own, there, [(new_id("echo").encode(), VALUE) for _ in range(total)])
    async with program(own, MODULE, bootstrap_servers(own), there, back, str(SESSION_PARTITIONS)):
        found = await _read(own, back, Counted.see, lambda seen: seen.records >= total)
    echoed.append(rate_between(found.steps))


def _catalog() -> list[CatalogRecord]:
    """One server of one tool that only reads, approved."""
    name = f"{SERVER}:{TOOL}"
    data = ServerTools(server=SERVER, status="listed", tools=(Tool(name=TOOL, definition=TOOL),))
    entry = {"scope": "readonly", "touches": [name], "approval": "auto"}
    file = PermissionFile.model_validate({"tools": {name: entry}})
    permissions = PermissionRecord(file=file, hash="measured")
    return [
        CatalogRecord(kind="permission", id="file", data=permissions),
        CatalogRecord(kind="tool", id=SERVER, data=data),
    ]


def _commands(runs: int) -> list[Record]:
    found = []
    for _ in range(runs):
        run_id = new_id("run")
        command = Command(
            type=RunStart.TYPE,
            command_id=new_id("cmd"),
            session_id=run_id,
            run_id=run_id,
            data=RunStart(workflow=ONE_CALL),
        )
        found.append((session_key(DEFAULT_TENANT, run_id), encode(command)))
    return found


async def _send(settings: Settings, topic: str, records: Sequence[Record]) -> None:
    producer = AIOKafkaProducer(**producer_options(settings))
    async with opened(producer, settings):
        sent = [
            await producer.send(topic, key=key, value=value, partition=partition_for(key))
            for key, value in records
        ]
        await asyncio.gather(*sent)


async def _answer_calls(settings: Settings) -> None:
    """What a bridge with tools that take no time would answer, for ever."""
    producer = AIOKafkaProducer(**producer_options(settings))
    async with opened(producer, settings), _consumer(settings) as consumer:
        consumer.assign(_pairs(settings.topics.tool_calls))
        while True:
            for records in (await consumer.getmany(timeout_ms=POLL_MS)).values():
                for record in records:
                    ended = encode(_answer(CallRun.model_validate_json(record.value)))
                    await producer.send(
                        settings.topics.tool_outcomes,
                        key=record.key,
                        value=ended,
                        partition=record.partition,
                    )


def _answer(call: CallRun) -> CallEnded:
    return CallEnded(
        call_id=call.call_id, tenant=call.tenant, session_id=call.session_id, status="ok", result=ANSWER
    )


async def _read(
    settings: Settings, topic: str, see: Callable[[Counted, Any], None], enough: Callable[[Counted], bool]
) -> Counted:
    """Read a topic from its beginning until it is enough; of each poll what is oldest comes first."""
    found = Counted()
    async with asyncio.timeout(TIMEOUT_S), _consumer(settings) as consumer:
        consumer.assign(_pairs(topic))
        while not enough(found):
            fetched = await consumer.getmany(timeout_ms=POLL_MS)
            records = [record for records in fetched.values() for record in records]
            for record in sorted(records, key=lambda record: record.timestamp):
                see(found, record)
    return found


def _see_event(found: Counted, record: Any) -> None:
    if counted(record):
        found.see(record)
        found.ends += event_type(record) in ENDS


def _consumer(settings: Settings) -> Any:
    return AIOKafkaConsumer(
        **client_options(settings), enable_auto_commit=False, auto_offset_reset="earliest"
    )


def _pairs(topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(SESSION_PARTITIONS)]
