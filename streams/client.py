"""The library for programs: send workflows, follow their events, read their results.

    from pml.streams.client import IntentProducer, wait_for_run

    async with IntentProducer("localhost:9092") as producer:
        submission = await producer.start_run({"tasks": [{"id": "n1", "tool": "time:get_current_time"}]})
    summary = await wait_for_run("localhost:9092", submission, timeout_s=60)

`docs/client.md` shows the rest. Delivery is at least once: a run or command sent twice under the same id is
run once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import uuid_utils
from aiokafka import AIOKafkaProducer
from aiokafka.errors import MessageSizeTooLargeError, UnknownTopicOrPartitionError
from pydantic import ValidationError

from pml.schemas.canonical import NotJson
from pml.schemas.codec import encode_command, explain
from pml.schemas.commands import Code, Command, CommandData, RunScore, RunStart
from pml.schemas.errors import Refused, UndecodableRecord, WaitedTooLong, WorkflowInvalid
from pml.schemas.events import CommandRejected, Event, RunStarted
from pml.schemas.identifiers import DEFAULT_TENANT, session_key
from pml.schemas.topics import RECORD_BYTES_MAX
from pml.schemas.workflow import Options, Workflow
from pml.streams.connection import partition_for, producer_options
from pml.streams.event_consumer import EventConsumer
from pml.streams.reachability import broker_errors
from pml.streams.results import ResultReader, read_result
from pml.streams.run_summary import RunSummary, TaskSummary, observe
from pml.streams.settings import Settings
from pml.streams.sources import missing_topic, opened, settings_of

__all__ = [
    "Code",
    "EventConsumer",
    "IntentProducer",
    "ResultReader",
    "RunSummary",
    "Submission",
    "TaskSummary",
    "read_result",
    "wait_for_answer",
    "wait_for_run",
]

# Two leaders of one cluster may disagree about the time by seconds; reading a minute more costs nothing.
CLOCK_MARGIN_MS = 60_000


@dataclass(frozen=True, slots=True)
class Submission:
    """A command that Kafka has taken: its ids and where it rests in `pml.commands`."""

    run_id: str
    session_id: str
    command_id: str
    partition: int
    offset: int
    tenant: str
    sent_at_ms: int


class IntentProducer:
    """Sends commands: idempotent, acknowledged by all replicas, each to the partition of its session.

    Args:
        source: settings, or the address of a Kafka broker.

    Raises:
        BrokerUnavailable: no broker answers; `pml up` starts one.
    """

    def __init__(self, source: Settings | str) -> None:
        self.settings = settings_of(source)

    async def __aenter__(self) -> IntentProducer:
        self._producer = AIOKafkaProducer(**producer_options(self.settings))
        self._open = AsyncExitStack()
        await self._open.enter_async_context(opened(self._producer, self.settings))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._open.aclose()

    async def start_run(
        self,
        workflow: Workflow | Code | Mapping[str, Any] | None = None,
        *,
        intent: str | None = None,
        options: Options | Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        session_id: str | None = None,
        run_id: str | None = None,
        command_id: str | None = None,
        tenant: str = DEFAULT_TENANT,
        principal: str = "local",
        traceparent: str | None = None,
        request: str | None = None,
    ) -> Submission:
        """Ask for a run; ids that are not given are made up, without a session the run is its own.

        Args:
            workflow: what to run: a workflow, or a program as `Code`; without one, the learned capability
                that the intent means.
            intent: what it is for, in words.
            options: those of a program or an intent; a workflow has its own.
            request: what is known of what the user wants beyond this run; it helps to predict the next one.

        Raises:
            WorkflowInvalid: it or its context is not as CONTRACT.md writes it, or too large.
            UndecodableRecord: an id, tenant or principal is not one that records can carry.
            BrokerUnavailable: Kafka did not take the command.
        """
        run_id = run_id or new_id("run")
        command = _command(
            command_id=command_id or new_id("cmd"),
            tenant=tenant,
            principal=principal,
            session_id=session_id or run_id,
            run_id=run_id,
            traceparent=traceparent,
            data=_run_start(workflow, context=context, intent=intent, options=options, request=request),
        )
        return await self.send(command)

    async def decide(
        self,
        run_id: str,
        data: CommandData,
        *,
        session_id: str | None = None,
        command_id: str | None = None,
        tenant: str = DEFAULT_TENANT,
        principal: str = "local",
        traceparent: str | None = None,
    ) -> Submission:
        """Send what somebody decided about a run (`RunContinue`, `RunAbort`, …).

        `wait_for_answer` has the answer, `wait_for_run` what the run comes to.
        A principal `person:NAME` is a person; only programs that a person stands at may write it.

        Raises:
            UndecodableRecord: an id, tenant or principal is not one that records can carry.
            BrokerUnavailable: Kafka did not take the command.
        """
        command = _command(
            type=data.TYPE,
            command_id=command_id or new_id("cmd"),
            tenant=tenant,
            principal=principal,
            session_id=session_id or run_id,
            run_id=run_id,
            traceparent=traceparent,
            data=data,
        )
        return await self.send(command)

    async def score(
        self,
        run_id: str,
        name: str,
        value: float | str | bool,
        *,
        source: str | None = None,
        comment: str = "",
        session_id: str | None = None,
        command_id: str | None = None,
        tenant: str = DEFAULT_TENANT,
        principal: str = "local",
        traceparent: str | None = None,
    ) -> Submission:
        """Say how good a run was, at any time: while it goes on, or long after its session has ended.

        Args:
            name: what is judged (`helpful`). Scored again, the newer value counts.
            value: a number, a category as text, or true or false.
            source: what judged: `human`, `agent`, `evaluator`, or a name; else it is told by the principal.
            session_id: the session that had the run; a run without one is its own session.

        Raises:
            WorkflowInvalid: the score is none.
            UndecodableRecord: an id, tenant or principal is not one that records can carry.
            BrokerUnavailable: Kafka did not take the command.
        """
        data = score_data(name, value, source=source, comment=comment)
        return await self.decide(
            run_id,
            data,
            session_id=session_id,
            command_id=command_id,
            tenant=tenant,
            principal=principal,
            traceparent=traceparent,
        )

    async def send(self, command: Command) -> Submission:
        """Send any command and wait until all replicas have it.

        Raises:
            WorkflowInvalid: the record is larger than the topic takes (code TOO_LARGE), or has a value that
                JSON does not have.
            BrokerUnavailable: Kafka did not take it.
            TopicMismatch: the broker has no topic for commands.
        """
        key, value = session_key(command.tenant, command.session_id), _encoded(command)
        if len(value) > RECORD_BYTES_MAX - 1024:
            raise _too_large(len(value))
        try:
            async with broker_errors(self.settings):
                taken = await self._producer.send_and_wait(
                    self.settings.topics.commands, value=value, key=key, partition=partition_for(key)
                )
        except MessageSizeTooLargeError:
            raise _too_large(len(value)) from None
        except UnknownTopicOrPartitionError:
            raise missing_topic(self.settings.topics.commands) from None
        return Submission(
            run_id=command.run_id or "",
            session_id=command.session_id,
            command_id=command.command_id,
            partition=taken.partition,
            offset=taken.offset,
            tenant=command.tenant,
            sent_at_ms=taken.timestamp,
        )


async def wait_for_run(
    source: Settings | str,
    submission: Submission,
    *,
    timeout_s: float | None = None,
    on_event: Callable[[Event], None] | None = None,
    until_waiting: bool = False,
) -> RunSummary:
    """Follow a submission, or a decision about a run, until the run has ended.

    A command that asked for a run that exists is answered with that run. `on_event` is called with every
    event of the run, in order. `until_waiting` returns as well as soon as the run waits for somebody.

    Raises:
        Refused: the command was rejected; the error has the code and message of the answer.
        WaitedTooLong: the run did not end within `timeout_s`; it goes on all the same.
        BrokerUnavailable: no broker answers.
    """
    try:
        async with asyncio.timeout(timeout_s):
            return await _follow(source, submission, on_event, until_waiting)
    except TimeoutError:
        raise WaitedTooLong(
            f"run {submission.run_id} did not end within {timeout_s:g} s; it goes on: `pml run show "
            f"{submission.run_id} --session {submission.session_id}` says how far it is",
            run_id=submission.run_id,
        ) from None


async def wait_for_answer(
    source: Settings | str, submission: Submission, *, timeout_s: float | None = None
) -> Event:
    """The first event that follows from a command: what was decided, or that it was obeyed before.

    Raises:
        Refused: the command was rejected; the error has the code and message of the answer.
        WaitedTooLong: no answer within `timeout_s`; is an orchestrator running?
        BrokerUnavailable: no broker answers.
    """
    session_id, tenant = submission.session_id, submission.tenant
    try:
        async with (
            asyncio.timeout(timeout_s),
            EventConsumer(source, session_id=session_id, tenant=tenant) as events,
        ):
            await events.seek_to_time(submission.sent_at_ms - CLOCK_MARGIN_MS)
            return await _answer(events, submission)
    except TimeoutError:
        raise WaitedTooLong(
            f"no answer within {timeout_s:g} s; is an orchestrator running? `pml status` says so"
        ) from None


def new_id(prefix: str) -> str:
    """A fresh id such as `run_…`: a UUIDv7, so that ids sort by the time they were made."""
    return f"{prefix}_{uuid_utils.uuid7().hex}"


async def _follow(
    source: Settings | str,
    submission: Submission,
    on_event: Callable[[Event], None] | None,
    until_waiting: bool,
) -> RunSummary:
    session_id, tenant = submission.session_id, submission.tenant
    async with EventConsumer(source, session_id=session_id, tenant=tenant) as events:
        await events.seek_to_time(submission.sent_at_ms - CLOCK_MARGIN_MS)
        answer = await _answer(events, submission)
        # A run that was there already began somewhere in this life of its session.
        events.seek(answer.offset if isinstance(answer.data, RunStarted) else answer.epoch)
        summary = RunSummary(answer.run_id or submission.run_id, session_id, tenant)
        async for event in events:
            if event.run_id == summary.run_id and on_event is not None:
                on_event(event)
            summary = observe(summary, event)
            # What a run was before the answer is not what was asked for.
            if event.offset >= answer.offset and _settled(summary, until_waiting):
                break
    return summary


def _settled(summary: RunSummary, until_waiting: bool) -> bool:
    return summary.ended or (until_waiting and summary.waiting)


async def _answer(events: EventConsumer, submission: Submission) -> Event:
    """The first event whose cause is this very command."""
    async for event in events:
        cause = event.cause
        if cause is None or cause.topic != events.settings.topics.commands:
            continue
        if cause.offset == submission.offset and cause.partition == submission.partition:
            if isinstance(event.data, CommandRejected):
                raise rejection(event.data)
            return event
    raise AssertionError("a consumer without an end ended")


def rejection(data: CommandRejected) -> Refused:
    """The error that a rejected command is told as: with the code and message of the answer."""
    details = dict(data.error.get("details") or {})
    message = str(data.error.get("message", "the command was rejected"))
    code = str(data.error.get("code", Refused.code))
    if data.invalid:
        return WorkflowInvalid(code, message, **details)
    error = Refused(message, **details)
    error.code, error.retryable = code, bool(data.error.get("retryable"))
    return error


def _encoded(command: Command) -> bytes:
    try:
        return encode_command(command)
    except NotJson as error:
        raise WorkflowInvalid("WORKFLOW_INVALID", error.message) from None


def score_data(name: str, value: float | str | bool, **fields: Any) -> RunScore:
    """The score of a value by its type.

    Raises:
        WorkflowInvalid: it is none.
    """
    kinds = {bool: "boolean", str: "category"}
    try:
        return RunScore.model_validate({"name": name, kinds.get(type(value), "number"): value, **fields})
    except ValidationError as error:
        raise WorkflowInvalid("WORKFLOW_INVALID", f"the score is wrong: {explain(error)}") from None


def _run_start(workflow: Workflow | Code | Mapping[str, Any] | None, **fields: Any) -> RunStart:
    given = {name: value for name, value in fields.items() if value is not None}
    what = "code" if isinstance(workflow, Code) else "workflow"
    try:
        return RunStart.model_validate({what: workflow, **given})
    except ValidationError as error:
        raise WorkflowInvalid("WORKFLOW_INVALID", f"the workflow is wrong: {explain(error)}") from None


def _command(**fields: Any) -> Command:
    try:
        return Command(**{"type": RunStart.TYPE, **fields})
    except ValidationError as error:
        raise UndecodableRecord(f"the command is wrong: {explain(error)}") from None


def _too_large(size: int) -> WorkflowInvalid:
    return WorkflowInvalid(
        "TOO_LARGE",
        f"the command has {size:,} bytes, at most {RECORD_BYTES_MAX - 1024:,} are taken; put large values "
        "where a tool can read them and pass their path",
    )
