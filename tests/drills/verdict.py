"""What must hold after any drill, read from the log, the topics, the servers' own log and ClickHouse."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition

from pml.clickhouse.client import Limits, Store
from pml.schemas.calls import CallRun
from pml.schemas.codec import decode_call, decode_event
from pml.schemas.events import Event, TaskFailed
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.connection import client_options, store_url
from pml.streams.log.reader import counted
from tests.drills.workshop import Workshop, lines

# The longest wait of a drill is a task's own deadline: 8 s in a queue, 3 s of time-out, 5 s of grace.
END_TIMEOUT_S = 90.0
STORE_TIMEOUT_S = 60.0
POLL_S = 0.2
LATE = frozenset({"TIMEOUT", "DEADLINE"})
ENDS = frozenset({"run.completed", "run.failed", "run.aborted"})
# A served result is called again now and then, to see that it was right.
BEGINNINGS = (".started", ".verifying")


@dataclass(frozen=True, slots=True)
class Counts:
    """What a drill saw, printed by it."""

    runs: int
    completed: int
    failures: str
    unknown: int
    events: int
    void: int
    calls: int
    repeated_calls: int
    effects: int
    hits: int

    def __str__(self) -> str:
        pairs = (f"{name}={getattr(self, name)}" for name in self.__slots__)
        return " ".join(pairs)


async def verdict(workshop: Workshop) -> Counts:
    """Wait until every run has ended, then check everything.

    Raises:
        AssertionError: something that must hold does not.
    """
    records = await _settled_log(workshop)
    events = [decode_event(record.value) for record in records if counted(record)]
    calls = await _calls(workshop)
    _check_sequences(events)
    _check_failures(events)
    _check_decided_once(workshop, events)
    _check_calls(events, calls)
    effects = _check_effects(workshop, events)
    await check_store(workshop, {(record.partition, record.offset) for record in records if counted(record)})
    ends = Counter(event.type for event in events if event.type in ENDS)
    return Counts(
        runs=len(workshop.submissions),
        completed=ends["run.completed"],
        failures=_failures(events),
        unknown=sum(event.type == "task.unknown" for event in events),
        events=len(events),
        void=len(records) - len(events),
        calls=len({call.call_id for call in calls}),
        repeated_calls=len(calls) - len({(call.call_id, call.speculative) for call in calls}),
        effects=effects,
        hits=sum(getattr(event.data, "fate", "") == "served" for event in events),
    )


async def read_topic(workshop: Workshop, topic: str, partitions: int = SESSION_PARTITIONS) -> list[Any]:
    """Every record of a topic, in order of its partitions."""
    consumer = AIOKafkaConsumer(
        **client_options(workshop.settings), enable_auto_commit=False, auto_offset_reset="earliest"
    )
    await consumer.start()
    try:
        pairs = [TopicPartition(topic, number) for number in range(partitions)]
        consumer.assign(pairs)
        ends = await consumer.end_offsets(pairs)
        found: list[Any] = []
        while any([await consumer.position(pair) < ends[pair] for pair in pairs]):
            fetched = await consumer.getmany(timeout_ms=200)
            for records in fetched.values():
                found.extend(records)
        return sorted(found, key=lambda record: (record.partition, record.offset))
    finally:
        await consumer.stop()


async def _settled_log(workshop: Workshop) -> list[Any]:
    """The log, once every submitted run has ended in it."""
    wanted = {submission.run_id for submission in workshop.submissions}
    give_up = time.monotonic() + END_TIMEOUT_S
    while True:
        records = await read_topic(workshop, workshop.settings.topics.events)
        ended = {
            decode_event(record.value).run_id
            for record in records
            if counted(record) and dict(record.headers).get("pml-type", b"").decode() in ENDS
        }
        if wanted <= ended:
            return records
        open_runs = sorted(wanted - ended)
        assert time.monotonic() < give_up, f"{len(open_runs)} runs never ended, for example {open_runs[:3]}"
        await asyncio.sleep(1)


async def _calls(workshop: Workshop) -> list[CallRun]:
    records = await read_topic(workshop, workshop.settings.topics.tool_calls)
    decoded = (decode_call(record.value) for record in records)
    return [call for call in decoded if isinstance(call, CallRun)]


def _check_failures(events: list[Event]) -> None:
    """A task may fail because a role was away past its deadline, and for no other reason."""
    for event in events:
        if isinstance(event.data, TaskFailed) and event.data.final:
            assert event.data.error.code in LATE, f"{event.id} failed: {event.data.error.code}"


def _failures(events: list[Event]) -> str:
    """How often tasks failed for good, by the code of their error."""
    codes = Counter(
        event.data.error.code for event in events if isinstance(event.data, TaskFailed) and event.data.final
    )
    return ",".join(f"{code}:{count}" for code, count in sorted(codes.items())) or "none"


def _check_sequences(events: list[Event]) -> None:
    """Among counted events a session has seq 0, 1, 2, …; each id is there once."""
    sessions: dict[tuple[str, int], list[int]] = defaultdict(list)
    for event in events:
        if event.session_id:
            sessions[event.session_id, event.epoch].append(event.seq)
    for session, found in sessions.items():
        assert found == list(range(len(found))), f"{session} has the sequence {found}"


def _check_decided_once(workshop: Workshop, events: list[Event]) -> None:
    """The events of an input lie together, and every command was answered by exactly one start."""
    ranges: dict[tuple[str, int, int], list[int]] = defaultdict(list)
    for event in events:
        if event.cause is not None:
            ranges[event.cause.topic, event.cause.partition, event.cause.offset].append(event.offset)
    for cause, offsets in ranges.items():
        together = list(range(offsets[0], offsets[0] + len(offsets)))
        assert offsets == together, f"the input {cause} was decided more than once: {offsets}"
    started = Counter(event.run_id for event in events if event.type == "run.started")
    wanted = Counter(submission.run_id for submission in workshop.submissions)
    assert started == wanted, "a run was started twice or never"
    ended = Counter(event.run_id for event in events if event.type in ENDS)
    assert ended == wanted, "a run ended twice"


def _check_calls(events: list[Event], calls: list[CallRun]) -> None:
    """No call follows from a void event; no speculative one may change anything."""
    begun = {getattr(event.data, "call_id", None) for event in events if event.type.endswith(BEGINNINGS)}
    assert calls, "no calls were read"
    for call in calls:
        assert call.call_id in begun, f"{call.call_id} follows from no event that counts"
        assert not (call.speculative and call.effect == "write"), f"{call.call_id} is unsafe and speculative"


def _check_effects(workshop: Workshop, events: list[Event]) -> int:
    """By the server's own log: no effect twice, none that was run early, one for each completed task."""
    written = [line for line in lines(workshop.ledger) if line["tool"] == "add"]
    assert not any(line["speculative"] for line in written)
    names = Counter(line["name"] for line in written)
    twice = [name for name, count in names.items() if count > 1]
    assert not twice, f"effects that happened twice: {twice}"
    completed = [
        event
        for event in events
        if event.type == "task.completed" and getattr(event.data, "task_id", "") == "effect"
    ]
    assert len(written) >= len(completed), "a task completed whose effect never happened"
    return len(written)


async def check_store(workshop: Workshop, wanted: set[tuple[int, int]]) -> None:
    """ClickHouse holds each counted event once, and nothing else."""
    give_up = time.monotonic() + STORE_TIMEOUT_S
    while len(stored := await asyncio.to_thread(_stored, workshop)) < len(wanted):
        assert time.monotonic() < give_up, f"ClickHouse has {len(stored)} of {len(wanted)} events"
        await asyncio.sleep(POLL_S)
    assert len(stored) == len(set(stored)), "ClickHouse holds an event twice"
    assert set(stored) == wanted, "ClickHouse holds an event that does not count"


def _stored(workshop: Workshop) -> list[tuple[int, int]]:
    settings = workshop.settings
    with Store.connect(store_url(settings), settings.clickhouse.database) as store:
        rows = store.query("SELECT partition, log_offset FROM events", limits=Limits(rows=1_000_000)).rows
    return [(int(partition), int(offset)) for partition, offset in rows]
