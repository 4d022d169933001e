"""The client library over a real broker; the log is written as the orchestrator writes it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from pml.schemas.base import Coordinate
from pml.schemas.calls import CallEnded, ToolResult
from pml.schemas.codec import decode_command, encode
from pml.schemas.commands import RunScore, RunStart
from pml.schemas.errors import (
    BrokerUnavailable,
    LogCorrupted,
    PayloadGone,
    Refused,
    TopicMismatch,
    UndecodableRecord,
    WaitedTooLong,
    WorkflowInvalid,
)
from pml.schemas.events import Cause, CommandRejected, Event, RunFailed, TaskFailed, TaskSkipped
from pml.schemas.identifiers import session_key
from pml.streams.client import (
    EventConsumer,
    IntentProducer,
    ResultReader,
    Submission,
    new_id,
    read_result,
    rejection,
    wait_for_run,
)
from pml.streams.connection import client_options, partition_for
from pml.streams.log.append import Outgoing
from pml.streams.log.reader import event_headers
from pml.streams.settings import Settings
from pml.streams.topics import ensure_topics
from tests.fixtures.patience import PATIENCE_S
from tests.log_writer import (
    LogWriter,
    command_attached,
    run_completed,
    run_started,
    task_completed,
    task_started,
)

pytestmark = [pytest.mark.integration]
WORKFLOW = {"name": "notes", "tasks": [{"id": "n1", "tool": "git:git_log", "arguments": {"max_count": 3}}]}


@pytest.fixture(scope="module")
def settings(kafka: str) -> Settings:
    prefix = f"{new_id('client')}."
    settings = Settings.load(kafka={"bootstrap_servers": kafka, "topic_prefix": prefix})
    asyncio.run(ensure_topics(settings))
    return settings


@pytest.fixture
async def log(settings: Settings) -> AsyncIterator[LogWriter]:
    async with LogWriter(settings) as log:
        yield log


@pytest.fixture
async def producer(settings: Settings) -> AsyncIterator[IntentProducer]:
    async with IntentProducer(settings) as producer:
        yield producer


def answers(settings: Settings, submission: Submission) -> Cause:
    return Cause(topic=settings.topics.commands, partition=submission.partition, offset=submission.offset)


async def read_record(settings: Settings, submission: Submission) -> Any:
    consumer = AIOKafkaConsumer(**client_options(settings))
    await consumer.start()
    try:
        partition = TopicPartition(settings.topics.commands, submission.partition)
        consumer.assign([partition])
        consumer.seek(partition, submission.offset)
        return await consumer.getone()
    finally:
        await consumer.stop()


async def collect(events: EventConsumer, count: int) -> list[Event]:
    found: list[Event] = []
    async with asyncio.timeout(PATIENCE_S):
        async for event in events:
            found.append(event)
            if len(found) == count:
                break
    return found


async def test_a_submission_rests_in_the_partition_of_its_session(
    settings: Settings, producer: IntentProducer
) -> None:
    submission = await producer.start_run(
        WORKFLOW, context={"repo": "."}, session_id="ses_a", principal="ada"
    )
    record = await read_record(settings, submission)
    command = decode_command(record.value)
    assert record.key == b"local/ses_a"
    assert submission.partition == partition_for(b"local/ses_a")
    assert (command.run_id, command.command_id) == (submission.run_id, submission.command_id)
    assert (command.session_id, command.principal) == ("ses_a", "ada")
    assert isinstance(command.data, RunStart)
    assert command.data.workflow is not None
    assert command.data.workflow.tasks[0].tool == "git:git_log"
    assert command.data.context == {"repo": "."}


async def test_a_run_without_a_session_is_its_own(producer: IntentProducer) -> None:
    submission = await producer.start_run(WORKFLOW)
    assert submission.session_id == submission.run_id
    assert submission.run_id.startswith("run_")
    assert submission.command_id.startswith("cmd_")


async def test_ids_that_are_given_are_kept(producer: IntentProducer) -> None:
    submission = await producer.start_run(
        WORKFLOW, run_id="run_mine", command_id="cmd_mine", session_id="ses_mine", tenant="acme"
    )
    ids = (submission.run_id, submission.command_id, submission.session_id, submission.tenant)
    assert ids == ("run_mine", "cmd_mine", "ses_mine", "acme")


@pytest.mark.parametrize(
    ("workflow", "complaint"),
    [
        ({"tasks": [{"id": "n1"}]}, "needs either `tool` or `capability`"),
        ({"tasks": [{"id": "n1", "tool": "git"}]}, "server:name"),
        ({"tasks": [], "taks": []}, "taks"),
        ({"version": 2}, "version"),
    ],
)
async def test_a_wrong_workflow_is_refused_at_the_door(
    producer: IntentProducer, workflow: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(WorkflowInvalid, match=complaint) as refusal:
        await producer.start_run(workflow)
    assert refusal.value.code == "WORKFLOW_INVALID"


@pytest.mark.parametrize(
    "value",
    [b"\xff", 2**64, "\ud83d", {1: "a"}, float, [{"x": (float("nan"),)}], float("-inf")],
    ids=["bytes", "a large number", "half an emoji", "a key that is no text", "a type", "NaN", "an infinity"],
)
async def test_a_value_that_json_does_not_have_is_refused_at_the_door(
    producer: IntentProducer, value: Any
) -> None:
    with pytest.raises(WorkflowInvalid, match=r"JSON does not have|JSON cannot carry") as refusal:
        await producer.start_run({"context": {"value": value}})
    assert (refusal.value.code, refusal.value.retryable) == ("WORKFLOW_INVALID", False)


@pytest.mark.parametrize("levels", [300, 1_000, 20_000])
@pytest.mark.parametrize("place", ["context", "arguments"])
async def test_what_is_nested_too_deeply_is_refused_at_the_door(
    producer: IntentProducer, place: str, levels: int
) -> None:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    given = {"value": value}
    tasks = [{"id": "n1", "tool": "a:b", "arguments": given if place == "arguments" else {}}]
    with pytest.raises(WorkflowInvalid, match=r"levels|nested") as refusal:
        await producer.start_run({"tasks": tasks, "context": given if place == "context" else {}})
    assert refusal.value.code == "WORKFLOW_INVALID"


@pytest.mark.parametrize(
    ("value", "field"),
    [(0.5, "number"), (3, "number"), (True, "boolean"), (False, "boolean"), ("dry", "category")],
)
async def test_a_score_has_the_kind_of_its_value(
    producer: IntentProducer, settings: Settings, value: Any, field: str
) -> None:
    sent = await producer.score("run_1", "quality", value, source="judge", comment="so", session_id="ses_1")
    command = decode_command((await read_record(settings, sent)).value)
    assert isinstance(command.data, RunScore)
    told = command.data.model_dump(exclude_none=True)
    assert told == {"name": "quality", field: value, "source": "judge", "comment": "so"}
    assert (command.type, command.run_id, command.session_id) == ("run.score", "run_1", "ses_1")


@pytest.mark.parametrize("value", [float("nan"), None, [1], "", "x" * 201])
async def test_what_is_no_score_is_refused_at_the_door(producer: IntentProducer, value: Any) -> None:
    with pytest.raises(WorkflowInvalid, match="the score is wrong"):
        await producer.score("run_1", "quality", value)


async def test_an_id_that_no_key_can_carry_is_refused_at_the_door(producer: IntentProducer) -> None:
    with pytest.raises(UndecodableRecord, match="session"):
        await producer.start_run(WORKFLOW, session_id="a/b")


async def test_a_command_that_no_topic_takes_is_refused_at_the_door(producer: IntentProducer) -> None:
    with pytest.raises(WorkflowInvalid, match="bytes") as refusal:
        await producer.start_run(WORKFLOW, context={"text": "x" * 11_000_000})
    assert refusal.value.code == "TOO_LARGE"


async def test_no_broker_is_one_clear_error() -> None:
    with pytest.raises(BrokerUnavailable, match="does not answer"):
        async with IntentProducer("127.0.0.1:1"):
            pass
    with pytest.raises(BrokerUnavailable, match="does not answer"):
        async with EventConsumer("127.0.0.1:1"):
            pass


async def test_a_broker_without_topics_is_one_clear_error(settings: Settings) -> None:
    kafka = settings.kafka.model_copy(update={"topic_prefix": "nobody.made."})
    with pytest.raises(TopicMismatch, match=r"nobody\.made\.events"):
        async with EventConsumer(settings.model_copy(update={"kafka": kafka}), until_end=True):
            pass


async def test_a_session_is_read_from_its_beginning_in_order(settings: Settings, log: LogWriter) -> None:
    session, other = new_id("ses"), new_id("ses")
    first = await log.write(session, run_started(), task_started(), run_id="run_1")
    await log.write(other, run_started(), run_id="run_2")
    second = await log.write(session, task_completed(), run_completed(), run_id="run_1")
    async with EventConsumer(settings, session_id=session, until_end=True) as events:
        assert [event async for event in events] == first + second


async def test_records_that_do_not_count_are_passed_over(settings: Settings, log: LogWriter) -> None:
    session = new_id("ses")
    written = await log.write(session, run_started(), run_id="run_1")
    late = written[0].model_copy(update={"seq": 1})
    partition = log.partition(session)
    await log.write_records(
        partition,
        [
            Outgoing(session_key("local", session), encode(late), event_headers(late)),
            Outgoing(session_key("local", session), b"no json at all"),
        ],
    )
    written += await log.write(session, run_completed(), run_id="run_1")
    async with EventConsumer(settings, session_id=session, until_end=True) as events:
        assert [event async for event in events] == written


async def test_from_the_end_only_what_comes_later_is_read(settings: Settings, log: LogWriter) -> None:
    session = new_id("ses")
    await log.write(session, run_started(), run_id="run_1")
    async with EventConsumer(settings, session_id=session, start="end") as events:
        later = await log.write(session, task_started(), task_completed(), run_id="run_1")
        assert await collect(events, 2) == later


async def test_what_is_appended_while_a_time_is_looked_for_is_read(
    settings: Settings, log: LogWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run may begin at any moment of the way that whoever waits for it takes to the log."""
    session = new_id("ses")
    offsets_for_times = AIOKafkaConsumer.offsets_for_times
    written: list[Event] = []

    async def answered_late(consumer: AIOKafkaConsumer, times: Any) -> Any:
        found = await offsets_for_times(consumer, times)
        written.extend(await log.write(session, run_started(), run_id="run_1"))
        return found

    monkeypatch.setattr(AIOKafkaConsumer, "offsets_for_times", answered_late)
    async with EventConsumer(settings, session_id=session) as events:
        await events.seek_to_time(2**41)
        written += await log.write(session, run_completed(), run_id="run_1")
        assert await collect(events, 2) == written


async def test_until_end_stops_where_the_log_ended_when_it_was_opened(
    settings: Settings, log: LogWriter
) -> None:
    session = new_id("ses")
    there = await log.write(session, run_started(), run_id="run_1")
    async with EventConsumer(settings, session_id=session, until_end=True) as events:
        await log.write(session, run_completed(), run_id="run_1")
        assert [event async for event in events] == there


async def test_all_sessions_are_read_and_types_chosen(settings: Settings, log: LogWriter) -> None:
    sessions = [new_id("ses") for _ in range(5)]
    for session in sessions:
        await log.write(session, run_started(), task_started(), run_completed(), run_id="run_1")
    async with EventConsumer(settings, until_end=True, types={"run.completed"}) as events:
        found = [event async for event in events]
    assert {event.type for event in found} == {"run.completed"}
    assert set(sessions) <= {event.session_id for event in found}


async def test_an_event_of_a_newer_release_stops_the_reader_with_a_sentence(
    settings: Settings, log: LogWriter
) -> None:
    session = new_id("ses")
    partition = log.partition(session)
    headers = [("pml-type", b"run.started"), ("pml-offset", str(log.end(partition)).encode())]
    value = b'{"type":"run.started","version":9,"data":{}}'
    await log.write_records(partition, [Outgoing(session_key("local", session), value, headers)])
    async with EventConsumer(settings, session_id=session, until_end=True) as events:
        with pytest.raises(LogCorrupted, match="version 9"):
            await anext(events)


async def test_waiting_ends_with_the_run_and_sums_it_up(
    settings: Settings, producer: IntentProducer, log: LogWriter
) -> None:
    submission = await producer.start_run(WORKFLOW)
    waiting = asyncio.create_task(wait_for_run(settings, submission, timeout_s=PATIENCE_S))
    cause = answers(settings, submission)
    error = {"code": "TOOL_ERROR", "type": "NOT_FOUND", "message": "no such file"}
    failed = TaskFailed.model_validate(
        {"task_id": "n2", "attempt": 1, "layer": 1, "tool": "files:read_file", "error": error}
    )
    skipped = TaskSkipped(task_id="n3", layer=2, tool="t:t", reason="dependency_failed", because="n2")
    ended = RunFailed(duration_ms=41, error={"code": "TASK_FAILED", "message": "task n2 failed"})
    for facts in ([run_started(), task_started()], [task_completed(), failed, skipped, ended]):
        await log.write(submission.session_id, *facts, run_id=submission.run_id, cause=cause)
    summary = (await waiting).as_dict()
    assert (summary["run_id"], summary["status"], summary["duration_ms"]) == (submission.run_id, "failed", 41)
    assert summary["error"]["code"] == "TASK_FAILED"
    assert summary["results"]["n1"]["status"] == "completed"
    assert summary["results"]["n1"]["served_by"] == "call"
    assert summary["results"]["n1"]["preview"] == "one commit"
    assert summary["results"]["n1"]["result_ref"]["topic"] == "pml.tool-outcomes"
    assert summary["results"]["n2"]["error"]["message"] == "no such file"
    assert summary["results"]["n3"]["error"]["code"] == "DEPENDENCY_FAILED"


async def test_an_attached_command_is_answered_with_the_run_that_was_there(
    settings: Settings, producer: IntentProducer, log: LogWriter
) -> None:
    first = await producer.start_run(WORKFLOW)
    facts = [run_started(), task_started(), task_completed(), run_completed()]
    await log.write(first.session_id, *facts, run_id=first.run_id, cause=answers(settings, first))
    again = await producer.start_run(WORKFLOW, run_id=first.run_id)
    seen: list[str] = []
    waiting = asyncio.create_task(
        wait_for_run(settings, again, timeout_s=PATIENCE_S, on_event=lambda event: seen.append(event.type))
    )
    await log.write(
        first.session_id, command_attached("completed"), run_id=first.run_id, cause=answers(settings, again)
    )
    summary = await waiting
    assert summary.status == "completed"
    assert summary.results["n1"].preview == "one commit"
    # The answer itself is seen where it lay there before the run was read.
    assert [kind for kind in seen if kind != "command.attached"] == [
        "run.started",
        "task.started",
        "task.completed",
        "run.completed",
    ]


@pytest.mark.parametrize("retryable", [True, False])
def test_a_rejection_says_whether_to_come_again(retryable: bool) -> None:
    answer = {"code": "SESSION_FULL", "message": "ends soon", "retryable": retryable, "details": {"most": 3}}
    error = rejection(CommandRejected(command_type="run.start", error=answer))
    assert error.as_dict() == answer


async def test_a_rejected_command_is_the_error_of_its_answer(
    settings: Settings, producer: IntentProducer, log: LogWriter
) -> None:
    submission = await producer.start_run(WORKFLOW)
    answer = {"code": "CYCLE", "message": "n1 waits for itself", "details": {"tasks": ["n1"]}}
    rejected = CommandRejected(command_type="run.start", error=answer)
    await log.write(submission.session_id, rejected, cause=answers(settings, submission))
    with pytest.raises(Refused, match="waits for itself") as refusal:
        await wait_for_run(settings, submission, timeout_s=PATIENCE_S)
    assert refusal.value.code == "CYCLE"
    assert refusal.value.details == {"tasks": ["n1"]}


async def test_the_answer_to_an_earlier_command_with_the_same_id_is_not_taken(
    settings: Settings, producer: IntentProducer, log: LogWriter
) -> None:
    first = await producer.start_run(WORKFLOW, command_id="cmd_same")
    facts = [run_started(), run_completed()]
    await log.write(first.session_id, *facts, run_id=first.run_id, cause=answers(settings, first))
    other = await producer.start_run(
        {**WORKFLOW, "name": "other"}, command_id="cmd_same", run_id=first.run_id
    )
    rejected = CommandRejected(
        command_type="run.start", error={"code": "CONFLICT", "message": "other content"}
    )
    await log.write(other.session_id, rejected, run_id=first.run_id, cause=answers(settings, other))
    with pytest.raises(Refused, match="other content"):
        await wait_for_run(settings, other, timeout_s=PATIENCE_S)


async def test_waiting_has_an_end(settings: Settings, producer: IntentProducer) -> None:
    submission = await producer.start_run(WORKFLOW)
    with pytest.raises(WaitedTooLong, match=submission.run_id):
        await wait_for_run(settings, submission, timeout_s=0.3)


async def send_outcome(settings: Settings, outcome: CallEnded) -> Coordinate:
    producer = AIOKafkaProducer(**client_options(settings), max_request_size=20_000_000)
    await producer.start()
    try:
        taken = await producer.send_and_wait(settings.topics.tool_outcomes, encode(outcome), partition=3)
    finally:
        await producer.stop()
    return Coordinate(topic=taken.topic, partition=taken.partition, offset=taken.offset)


def outcome(text: str) -> CallEnded:
    result = ToolResult(content=[{"type": "text", "text": text}], structured={"lines": [text, None]})
    return CallEnded(call_id="call_1", tenant="local", session_id="ses_1", status="ok", result=result)


async def test_full_results_are_read_where_they_rest(settings: Settings) -> None:
    large = outcome("x" * 5_000_000)
    places = [await send_outcome(settings, item) for item in (outcome("a"), large, outcome("b"))]
    async with ResultReader(settings) as results:
        assert await results.read(places[2]) == outcome("b").result
        assert await results.read(places[1]) == large.result
    assert await read_result(settings, places[0]) == outcome("a").result


async def test_a_result_past_its_time_is_gone(settings: Settings) -> None:
    place = await send_outcome(settings, outcome("a"))
    short = settings.timeouts.model_copy(update={"results_ttl_s": 0.001})
    await asyncio.sleep(
        0.01
    )  # the value is older than its time to live afterwards, whatever the machine does
    with pytest.raises(PayloadGone, match="expired"):
        await read_result(settings.model_copy(update={"timeouts": short}), place)


async def test_a_coordinate_that_leads_nowhere_says_so(settings: Settings) -> None:
    place = await send_outcome(
        settings, CallEnded(call_id="c", tenant="t", session_id="s", status="cancelled")
    )
    async with ResultReader(settings) as results:
        with pytest.raises(PayloadGone, match="gave no result"):
            await results.read(place)
        with pytest.raises(PayloadGone, match="nothing was ever written"):
            await results.read(place.model_copy(update={"offset": place.offset + 100}))
        with pytest.raises(PayloadGone, match="no results rest in"):
            await results.read(place.model_copy(update={"topic": settings.topics.events}))
