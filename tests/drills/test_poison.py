"""Poison for every consumer, between two good records of one session (DESIGN rule 9).

Each time: a clear error, a dead letter or a failed task, and the second good record is handled.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import orjson
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import MessageSizeTooLargeError

from pml.schemas.errors import Refused, WorkflowInvalid
from pml.schemas.events import Event
from pml.schemas.identifiers import session_key
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.catalog_topic import read_catalog, servers_of
from pml.streams.client import EventConsumer, IntentProducer, RunSummary, new_id, wait_for_run
from pml.streams.connection import client_options, partition_for, producer_options
from tests.drills.workshop import STARTED, Workshop, lines
from tests.fixtures.patience import PATIENCE_S

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

LOOK = {"tasks": [{"id": "look", "tool": "ledger:look", "arguments": {"name": "a"}}]}
LARGE = b"x" * 50_000_000
# Nothing here waits for a time-out but what says so itself.
TIMEOUTS = {"task_s": 60, "queue_s": 120}


async def run(workshop: Workshop, session_id: str, workflow: dict[str, Any] = LOOK) -> RunSummary:
    """Run a workflow in a session."""
    async with IntentProducer(workshop.settings) as producer:
        submission = await producer.start_run(workflow, session_id=session_id)
    return await wait_for_run(workshop.settings, submission, timeout_s=PATIENCE_S)


def one_task(tool: str, **fields: Any) -> dict[str, Any]:
    """A workflow of one task."""
    return {"tasks": [{"id": "n1", "tool": f"ledger:{tool}", "arguments": {"name": "a"}, **fields}]}


async def send(
    workshop: Workshop, topic: str, value: bytes | None, session_id: str, partition: int | None = None
) -> Any:
    """Put raw bytes into a topic, under the key of a session."""
    key = session_key("local", session_id)
    where = partition_for(key) if partition is None else partition
    options = {**producer_options(workshop.settings), "max_request_size": 64 * 1024 * 1024}
    async with AIOKafkaProducer(**options) as producer:
        return await producer.send_and_wait(topic, value=value, key=key, partition=where)


async def dead_letter_of(workshop: Workshop, sent: Any) -> Any:
    """The dead letter of a record, once it is there."""
    wanted = {
        "pml-dlq-topic": sent.topic.encode(),
        "pml-dlq-partition": str(sent.partition).encode(),
        "pml-dlq-offset": str(sent.offset).encode(),
    }
    partition = TopicPartition(workshop.settings.topics.dead_letters, 0)
    consumer = AIOKafkaConsumer(
        **client_options(workshop.settings), enable_auto_commit=False, auto_offset_reset="earliest"
    )
    async with consumer:
        consumer.assign([partition])
        give_up = time.monotonic() + PATIENCE_S
        while time.monotonic() < give_up:
            for records in (await consumer.getmany(timeout_ms=200)).values():
                for record in records:
                    if wanted.items() <= dict(record.headers).items():
                        return record
    raise AssertionError("there is no dead letter of it")


async def answer_to(workshop: Workshop, session_id: str, command_id: str) -> Event:
    """The event that answers a command."""
    async with asyncio.timeout(PATIENCE_S), EventConsumer(workshop.settings, session_id=session_id) as events:
        async for event in events:
            if event.command_id == command_id:
                return event
    raise AssertionError


BROKEN = {
    "bytes": b"\xff\x00\xfe",
    "list": b"[1, 2]",
    "empty": b"",
    "absent": None,
    "unknown type": b'{"type": "no.such", "version": 1}',
    "unknown version": b'{"type": "run.start", "version": 99, "data": {}}',
    "types": b'{"type": 7, "version": "x"}',
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("topic", ["commands", "tool_outcomes", "tool_calls"])
async def test_what_cannot_be_decoded_is_a_dead_letter_with_its_bytes_untouched(
    workshop: Workshop, topic: str, name: str
) -> None:
    session_id = new_id("ses")
    assert (await run(workshop, session_id)).status == "completed"
    sent = await send(workshop, getattr(workshop.settings.topics, topic), BROKEN[name], session_id)
    assert (await run(workshop, session_id)).status == "completed"
    letter = await dead_letter_of(workshop, sent)
    assert letter.value == BROKEN[name]
    assert letter.key == session_key("local", session_id)
    assert dict(letter.headers)["pml-dlq-code"] in {b"UNDECODABLE", b"UNKNOWN_TYPE_OR_VERSION"}


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ({"type": "run.start", "version": 99}, "UNKNOWN_TYPE_OR_VERSION"),
        ({"type": "run.dance", "version": 1}, "UNKNOWN_TYPE_OR_VERSION"),
        ({"type": "run.score", "version": 1}, "UNDECODABLE"),
        (
            {"type": "run.start", "version": 1, "data": {"workflow": {"tasks": [{"id": "1 2"}]}}},
            "UNDECODABLE",
        ),
        ({"type": "run.start", "version": 1, "data": {"context": {"a": 1}}}, "NOTHING_TO_RUN"),
    ],
)
async def test_whoever_sent_a_command_that_cannot_be_obeyed_is_answered(
    workshop: Workshop, command: dict[str, Any], code: str
) -> None:
    session_id, command_id = new_id("ses"), new_id("cmd")
    value = orjson.dumps({**command, "command_id": command_id, "session_id": session_id})
    assert (await run(workshop, session_id)).status == "completed"
    await send(workshop, workshop.settings.topics.commands, value, session_id)
    assert (await run(workshop, session_id)).status == "completed"
    answer = await answer_to(workshop, session_id, command_id)
    assert answer.type == "command.rejected"
    assert getattr(answer.data, "error", {})["code"] == code


async def test_a_record_in_the_wrong_partition_is_decided_in_the_right_one(workshop: Workshop) -> None:
    session_id, run_id = new_id("ses"), new_id("run")
    assert (await run(workshop, session_id)).status == "completed"
    command = {
        "type": "run.start",
        "command_id": new_id("cmd"),
        "session_id": session_id,
        "run_id": run_id,
        "data": {"workflow": LOOK},
    }
    right = partition_for(session_key("local", session_id))
    wrong = (right + 1) % SESSION_PARTITIONS
    await send(workshop, workshop.settings.topics.commands, orjson.dumps(command), session_id, wrong)
    async with asyncio.timeout(PATIENCE_S), EventConsumer(workshop.settings, session_id=session_id) as events:
        async for event in events:
            if event.run_id == run_id and event.type == "run.completed":
                assert event.cause is not None
                assert event.cause.partition == right
                break
    assert (await run(workshop, session_id)).status == "completed"


@pytest.mark.parametrize(
    "topic", ["commands", "tool_calls", "call_claims", "tool_outcomes", "events", "catalog", "lessons"]
)
async def test_fifty_megabytes_are_refused_by_the_broker(workshop: Workshop, topic: str) -> None:
    session_id = new_id("ses")
    assert (await run(workshop, session_id)).status == "completed"
    with pytest.raises(MessageSizeTooLargeError):
        await send(workshop, getattr(workshop.settings.topics, topic), LARGE, session_id, partition=0)
    assert (await run(workshop, session_id)).status == "completed"


async def test_fifty_megabytes_are_refused_at_the_door(workshop: Workshop) -> None:
    session_id = new_id("ses")
    assert (await run(workshop, session_id)).status == "completed"
    async with IntentProducer(workshop.settings) as producer:
        with pytest.raises(WorkflowInvalid) as refused:
            await producer.start_run(LOOK, context={"large": LARGE.decode()}, session_id=session_id)
    assert refused.value.code == "TOO_LARGE"
    assert (await run(workshop, session_id)).status == "completed"


async def test_a_reference_to_nowhere_is_refused_or_fails_its_task(workshop: Workshop) -> None:
    session_id = new_id("ses")
    nowhere = {"name": {"type": "reference", "expression": "ghost.name"}}
    with pytest.raises(Refused, match="ghost"):
        await run(
            workshop, session_id, {"tasks": [{"id": "n1", "tool": "ledger:look", "arguments": nowhere}]}
        )
    missing = {"name": {"type": "reference", "expression": "n1.no_such_field"}}
    workflow = one_task("look")
    workflow["tasks"].append({"id": "n2", "tool": "ledger:look", "arguments": missing})
    summary = await run(workshop, session_id, workflow)
    assert summary.status == "failed"
    assert summary.results["n1"].status == "completed"
    assert (summary.results["n2"].error or {})["code"] == "UNRESOLVED_ARGUMENT"
    assert (await run(workshop, session_id)).status == "completed"


@pytest.mark.parametrize(
    ("tool", "codes"),
    [
        ("hang", {"TIMEOUT"}),
        ("flood", {"RESULT_TOO_LARGE"}),
        ("die", {"CONNECTION_LOST", "SERVER_UNAVAILABLE"}),
    ],
)
async def test_a_tool_that_misbehaves_fails_its_task_and_nothing_else(
    workshop: Workshop, tool: str, codes: set[str]
) -> None:
    session_id = new_id("ses")
    assert (await run(workshop, session_id)).status == "completed"
    summary = await run(workshop, session_id, one_task(tool, **({"timeout_s": 2} if tool == "hang" else {})))
    assert summary.status == "failed"
    assert (summary.results["n1"].error or {})["code"] in codes
    assert (await run(workshop, session_id)).status == "completed"


@pytest.mark.parametrize("name", BROKEN)
async def test_rubbish_among_the_claims_is_no_claim(workshop: Workshop, name: str) -> None:
    session_id = new_id("ses")
    adding = one_task("add", arguments={"name": session_id})
    first = await run(workshop, session_id, adding)
    before = await end_of_claims(workshop, session_id)
    await send(workshop, workshop.settings.topics.call_claims, BROKEN[name], session_id)
    assert await end_of_claims(workshop, session_id) == before + 1, "that alone came"
    second = await run(workshop, session_id, adding)
    assert (first.status, second.status) == ("completed", "completed")
    assert await end_of_claims(workshop, session_id) == before + 3, "one claim too early, and one that counts"
    added = [line for line in lines(workshop.ledger) if (line["tool"], line["name"]) == ("add", session_id)]
    assert len(added) == 2, "once by each run"


async def end_of_claims(workshop: Workshop, session_id: str) -> int:
    """The next offset of the claims of a session's partition."""
    partition = TopicPartition(
        workshop.settings.topics.call_claims, partition_for(session_key("local", session_id))
    )
    async with AIOKafkaConsumer(**client_options(workshop.settings), enable_auto_commit=False) as consumer:
        return int((await consumer.end_offsets([partition]))[partition])


async def test_rubbish_in_the_log_and_in_the_catalog_counts_for_nobody(workshop: Workshop) -> None:
    session_id = new_id("ses")
    assert (await run(workshop, session_id)).status == "completed"
    await send(workshop, workshop.settings.topics.events, b"rubbish", session_id)
    await send(workshop, workshop.settings.topics.catalog, b"rubbish", session_id, partition=0)
    assert (await run(workshop, session_id)).status == "completed"
    assert "ledger" in servers_of(await read_catalog(workshop.settings))
    assert all(map(workshop.alive, STARTED))
