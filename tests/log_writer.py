"""Writes `pml.events` as the orchestrator does: one batch an append, each event at the offset it names."""

from __future__ import annotations

from collections import defaultdict
from types import TracebackType
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition

from pml.schemas.base import Coordinate
from pml.schemas.codec import encode
from pml.schemas.events import (
    Cause,
    CommandAttached,
    Event,
    EventData,
    RunCompleted,
    RunCounts,
    RunStarted,
    SpeculationEnded,
    TaskCompleted,
    TaskStarted,
)
from pml.schemas.identifiers import event_id, session_key
from pml.schemas.times import to_rfc3339
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.connection import client_options, partition_for, producer_options
from pml.streams.log.append import Appender, Outgoing
from pml.streams.log.reader import event_headers
from pml.streams.settings import Settings

START_MS = 1_795_000_000_000


class LogWriter:
    """The one writer of a log that nobody else writes."""

    def __init__(self, settings: Settings, tenant: str = "local") -> None:
        self._settings = settings
        self._tenant = tenant
        self._topic = settings.topics.events
        self._appender = Appender(producer_options(settings))
        self._ends: dict[int, int] = {}
        self._seqs: dict[str, int] = defaultdict(int)
        self._epochs: dict[str, int] = {}

    async def __aenter__(self) -> LogWriter:
        await self._appender.start()
        consumer = AIOKafkaConsumer(**client_options(self._settings))
        await consumer.start()
        try:
            partitions = [TopicPartition(self._topic, number) for number in range(SESSION_PARTITIONS)]
            ends = await consumer.end_offsets(partitions)
        finally:
            await consumer.stop()
        self._ends = {partition.partition: end for partition, end in ends.items()}
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._appender.stop()

    def partition(self, session_id: str) -> int:
        """The partition of a session."""
        return partition_for(session_key(self._tenant, session_id))

    def end(self, partition: int) -> int:
        """The offset of the next record of a partition."""
        return self._ends[partition]

    async def write(
        self,
        session_id: str,
        *data: EventData,
        run_id: str | None = None,
        cause: Cause | None = None,
        command_id: str | None = None,
    ) -> list[Event]:
        """Append these facts of a session as one batch; the events as they lie."""
        first = self._ends[self.partition(session_id)]
        epoch = self._epochs.setdefault(session_id, first)
        events = []
        for offset, item in enumerate(data, first):
            seq = self._seqs[session_id]
            self._seqs[session_id] += 1
            events.append(
                Event(
                    id=event_id(self._tenant, session_id, epoch, seq),
                    type=item.TYPE,
                    tenant=self._tenant,
                    principal="somebody",
                    session_id=session_id,
                    epoch=epoch,
                    run_id=run_id,
                    seq=seq,
                    offset=offset,
                    occurred_at=to_rfc3339(START_MS + offset),
                    cause=cause,
                    command_id=command_id,
                    data=item,
                )
            )
        await self.write_events(events)
        return events

    async def write_events(self, events: list[Event]) -> None:
        """Append events as they are, wherever they say that they lie."""
        session_id = events[0].session_id
        records = [
            Outgoing(session_key(event.tenant, event.session_id), encode(event), event_headers(event))
            for event in events
        ]
        await self.write_records(self.partition(session_id), records)

    async def write_records(self, partition: int, records: list[Outgoing]) -> int:
        """Append anything; the offset of the first record."""
        first = await self._appender.send(self._topic, partition, records)
        self._ends[partition] = first + len(records)
        return first


def event_of(data: EventData, seq: int, offset: int, occurred_at: str) -> Event:
    """An event of one session as it lies in the log."""
    return Event(
        id=f"local/s:0:{seq}",
        type=data.TYPE,
        tenant="local",
        session_id="s",
        epoch=0,
        seq=seq,
        offset=offset,
        occurred_at=occurred_at,
        data=data,
    )


def run_started(**fields: Any) -> RunStarted:
    """A run of two layers."""
    given = {"name": "notes", "workflow_type": "notes", "definition": {"tasks": []}, "context": {"repo": "."}}
    payload = Coordinate(topic="pml.commands", partition=0, offset=0)
    times = {"payload_ref": payload, "payload_hash": "h", "deadline_at": to_rfc3339(START_MS + 300_000)}
    return RunStarted.model_validate({**given, **times, "layers": 2, "tasks": 2, **fields})


def run_completed(**fields: Any) -> RunCompleted:
    """A run that went well."""
    return RunCompleted(
        **{"executed_path": ("n1", "n2"), "counts": RunCounts(tasks=2, completed=2), **fields}
    )


def command_attached(status: str) -> CommandAttached:
    """The answer to a command that was sent before."""
    return CommandAttached(status=status)


def task_started(task_id: str = "n1", **fields: Any) -> TaskStarted:
    """A real call of a reading tool begins."""
    given = {
        "task_id": task_id,
        "layer": 0,
        "tool": "git:log",
        "call_id": f"call_{task_id}",
        "arguments": {"max_count": 20},
        "arguments_hash": "a",
        "effect": "read",
        "touches": ("git:.",),
        "cacheable": True,
        "ttl_s": 300.0,
        "timeout_ms": 30_000,
        "deadline_at": to_rfc3339(START_MS + 95_000),
        "permission": "git:*",
        "attempt": 1,
    }
    return TaskStarted.model_validate({**given, **fields})


def task_completed(task_id: str = "n1", **fields: Any) -> TaskCompleted:
    """A call gave its result."""
    given = {
        "task_id": task_id,
        "attempt": 1,
        "layer": 0,
        "tool": "git:log",
        "call_id": f"call_{task_id}",
        "arguments": {"max_count": 20},
        "arguments_hash": "a",
        "started_at": to_rfc3339(START_MS),
        "duration_ms": 9.5,
        "tool_ms": 9.0,
        "result": {"content": [{"type": "text", "text": "one commit"}]},
        "preview": "one commit",
        "result_ref": Coordinate(topic="pml.tool-outcomes", partition=0, offset=0),
        "result_hash": "r",
        "result_bytes": 40,
        "as_of": to_rfc3339(START_MS),
    }
    return TaskCompleted.model_validate({**given, **fields})


def speculation_ended(fate: str = "served", reason: str = "hit", **fields: Any) -> SpeculationEnded:
    """What became of a speculative call."""
    given = {
        "call_id": "call_n2",
        "started_seq": 1,
        "task_id": "n2",
        "tool": "git:log",
        "kind": "layer",
        "arguments": {"max_count": 20},
        "arguments_hash": "a",
        "confidence": 1.0,
        "fate": fate,
        "reason": reason,
        "tool_ms": 9.0,
        "saved_ms": 9.0 if fate == "served" else 0.0,
    }
    return SpeculationEnded.model_validate({**given, **fields})
