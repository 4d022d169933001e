"""What must hold after any drill, read from the log, the topics, the servers' own log and ClickHouse."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition

from pml.clickhouse.client import Limits, Store
from pml.schemas.calls import CallRun
from pml.schemas.codec import decode_call, decode_event
from pml.schemas.events import Event, TaskFailed
from pml.schemas.speculation_events import SpeculationStarted
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.connection import client_options, store_url
from pml.streams.log.reader import counted
from tests.drills.tally import ENDS
from tests.drills.workshop import Workshop, lines
from tests.fixtures.patience import PATIENCE_S

OFFSET_MAX = 2**62
POLL_S = 0.2
# What views make of events, and where an event lies in the log.
DERIVED = ("runs_raw", "tasks_raw", "speculations_raw")
PLACE = "partition, log_offset"
LATE = frozenset({"TIMEOUT", "DEADLINE"})


@dataclass(frozen=True, slots=True)
class Counts:
    """What a drill saw since the one before, printed by it."""

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
    predicted: int
    foreseen: int
    foreseen_hits: int

    def __str__(self) -> str:
        pairs = (f"{name}={getattr(self, name)}" for name in self.__slots__)
        return " ".join(pairs)


async def verdict(workshop: Workshop) -> Counts:
    """Wait until every run has ended, then check everything that was written since the last verdict.

    Raises:
        AssertionError: something that must hold does not.
    """
    tally = workshop.tally
    runs = [submission.run_id for submission in workshop.submissions[tally.submissions :]]
    since = dict(tally.positions[workshop.settings.topics.events])
    records = await _settled_log(workshop, set(runs))
    # What was foreseen begins after the last run has ended: its event was written before its call.
    calls = await _new_calls(workshop)
    records = _in_order([*records, *await _read_on(workshop, workshop.settings.topics.events)])
    events = [decode_event(record.value) for record in records if counted(record)]
    for event in events:
        tally.fold(event)
    _check_runs(workshop, runs)
    _check_failures(events)
    repeated = _check_calls(workshop, calls)
    effects = _check_effects(workshop, events)
    wanted = {(record.partition, record.offset) for record in records if counted(record)}
    until = dict(tally.positions[workshop.settings.topics.events])
    await check_store(workshop, wanted, since, until, tally.events)
    ends = Counter(event.type for event in events if event.type in ENDS)
    served = [event for event in events if getattr(event.data, "fate", "") == "served"]
    return Counts(
        runs=len(runs),
        completed=ends["run.completed"],
        failures=_failures(events),
        unknown=sum(event.type == "task.unknown" for event in events),
        events=len(events),
        void=len(records) - len(events),
        calls=len({call.call_id for call in calls}),
        repeated_calls=repeated,
        effects=effects,
        hits=len(served),
        predicted=sum(event.type == "prediction.made" for event in events),
        foreseen=sum(is_foreseen(event) for event in events),
        foreseen_hits=sum(getattr(event.data, "kind", "") == "prediction" for event in served),
    )


def is_foreseen(event: Event) -> bool:
    """Whether a call began because it was predicted."""
    return isinstance(event.data, SpeculationStarted) and event.data.kind == "prediction"


async def until_foreseen(workshop: Workshop) -> None:
    """Wait until a call began because it was predicted: enough sessions went one way, and are counted."""
    give_up = time.monotonic() + PATIENCE_S
    positions: dict[int, int] = {}
    while True:
        records = await read_topic(workshop, workshop.settings.topics.events, since=positions)
        if any(is_foreseen(decode_event(record.value)) for record in records if counted(record)):
            return
        positions.update({record.partition: record.offset + 1 for record in records})
        assert time.monotonic() < give_up, f"nothing was foreseen; {workshop.account('bridge')}"
        await asyncio.sleep(POLL_S)


async def read_topic(
    workshop: Workshop,
    topic: str,
    partitions: int = SESSION_PARTITIONS,
    since: Mapping[int, int] | None = None,
) -> list[Any]:
    """Every record of a topic from these offsets on (else all), in order of its partitions."""
    consumer = AIOKafkaConsumer(
        **client_options(workshop.settings), enable_auto_commit=False, auto_offset_reset="earliest"
    )
    await consumer.start()
    try:
        pairs = [TopicPartition(topic, number) for number in range(partitions)]
        consumer.assign(pairs)
        for pair in pairs:
            if since and pair.partition in since:
                consumer.seek(pair, since[pair.partition])
        ends = await consumer.end_offsets(pairs)
        found: list[Any] = []
        while any([await consumer.position(pair) < ends[pair] for pair in pairs]):
            fetched = await consumer.getmany(timeout_ms=200)
            for records in fetched.values():
                found.extend(records)
        return _in_order(found)
    finally:
        await consumer.stop()


async def _read_on(workshop: Workshop, topic: str) -> list[Any]:
    """What a topic has since it was last read."""
    positions = workshop.tally.positions[topic]
    found = await read_topic(workshop, topic, since=positions)
    positions.update({record.partition: record.offset + 1 for record in found})
    return found


async def _settled_log(workshop: Workshop, wanted: set[str]) -> list[Any]:
    """What is new in the log, once these runs have ended in it."""
    give_up = time.monotonic() + PATIENCE_S
    found: list[Any] = []
    while wanted:
        new = await _read_on(workshop, workshop.settings.topics.events)
        found += new
        wanted -= {
            str(decode_event(record.value).run_id)
            for record in new
            if counted(record) and dict(record.headers).get("pml-type", b"").decode() in ENDS
        }
        text = f"{len(wanted)} runs never ended, for example {sorted(wanted)[:3]}"
        assert time.monotonic() < give_up, text
        await asyncio.sleep(POLL_S)
    return found


def _in_order(records: Iterable[Any]) -> list[Any]:
    return sorted(records, key=lambda record: (record.partition, record.offset))


async def _new_calls(workshop: Workshop) -> list[CallRun]:
    records = await _read_on(workshop, workshop.settings.topics.tool_calls)
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


def _check_runs(workshop: Workshop, runs: Sequence[str]) -> None:
    """Every run that was asked for began once and ended once, also those of earlier drills."""
    tally = workshop.tally
    tally.submissions += len(runs)
    wanted = Counter(submission.run_id for submission in workshop.submissions[: tally.submissions])
    assert +tally.started == wanted, "a run was started twice or never"
    assert +tally.ended == wanted, "a run ended twice"


def _check_calls(workshop: Workshop, calls: list[CallRun]) -> int:
    """No call follows from a void event; no speculative one may change anything; how many were sent again."""
    assert calls, "no calls were read"
    tally = workshop.tally
    repeated = 0
    for call in calls:
        assert call.call_id in tally.begun, f"{call.call_id} follows from no event that counts"
        assert not (call.speculative and call.effect == "write"), f"{call.call_id} is unsafe and speculative"
        repeated += (call.call_id, call.speculative) in tally.sent
        tally.sent.add((call.call_id, call.speculative))
    return repeated


def _check_effects(workshop: Workshop, events: list[Event]) -> int:
    """By the server's own log: no effect twice, none that was run early, one for each completed task."""
    tally = workshop.tally
    new = lines(workshop.ledger)[tally.lines :]
    tally.lines += len(new)
    written = [line for line in new if line["tool"] == "add"]
    assert not any(line["speculative"] for line in written)
    tally.effects.update(line["name"] for line in written)
    twice = [line["name"] for line in written if tally.effects[line["name"]] > 1]
    assert not twice, f"effects that happened twice: {twice}"
    completed = [
        event
        for event in events
        if event.type == "task.completed" and getattr(event.data, "task_id", "") == "effect"
    ]
    assert len(written) >= len(completed), "a task completed whose effect never happened"
    return len(written)


async def check_store(
    workshop: Workshop,
    wanted: set[tuple[int, int]],
    since: Mapping[int, int] | None = None,
    until: Mapping[int, int] | None = None,
    total: int | None = None,
) -> None:
    """ClickHouse holds each counted event once, and nothing else; also the rows that views made of them.

    What is asked is what was written: readers' views would hide what is there twice.

    `wanted` are those from the offsets `since` up to the offsets `until`, by partition (else all); `total` is
    how many there are up to there. What is written meanwhile, as when an early result expires, is left to the
    next verdict.
    """
    give_up = time.monotonic() + PATIENCE_S
    new, all_ = _between(since or {}, until or {}), _between({}, until or {})
    while len(stored := await asyncio.to_thread(_stored, workshop, new)) < len(wanted):
        text = f"ClickHouse has {len(stored)} of {len(wanted)} events"
        assert time.monotonic() < give_up, f"{text}; {workshop.account('sink')}"
        await asyncio.sleep(POLL_S)
    assert len(stored) == len(set(stored)), "ClickHouse holds an event twice"
    assert set(stored) == wanted, f"these events do not count: {sorted(set(stored) ^ wanted)[:5]}"
    for table in DERIVED:
        query = f"SELECT {PLACE} FROM {table} GROUP BY {PLACE} HAVING count() > 1"
        twice = await asyncio.to_thread(_ask, workshop, query)
        assert twice == [], f"{table} holds rows twice: {twice[:5]}"
    held = await asyncio.to_thread(_ask, workshop, f"SELECT count() FROM events_raw WHERE {all_}")
    assert int(held[0][0]) == (len(wanted) if total is None else total), "an earlier event came or went"


def _between(since: Mapping[int, int], until: Mapping[int, int]) -> str:
    """The condition that an event lies between these offsets of its partition."""
    first = [since.get(number, 0) for number in range(SESSION_PARTITIONS)]
    after = [until.get(number, 0 if until else OFFSET_MAX) for number in range(SESSION_PARTITIONS)]
    return (
        f"log_offset >= arrayElement({first}, partition + 1) "
        f"AND log_offset < arrayElement({after}, partition + 1)"
    )


def _stored(workshop: Workshop, condition: str) -> list[tuple[int, int]]:
    rows = _ask(workshop, f"SELECT {PLACE} FROM events_raw WHERE {condition}")
    return [(int(partition), int(offset)) for partition, offset in rows]


def _ask(workshop: Workshop, query: str) -> list[Any]:
    settings = workshop.settings
    with Store.connect(
        store_url(settings), settings.clickhouse.database, answer_timeout_s=PATIENCE_S
    ) as store:
        return list(store.query(query, limits=Limits(rows=1_000_000)).rows)
