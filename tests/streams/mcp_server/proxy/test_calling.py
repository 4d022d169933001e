"""A call between the client and the log, with a log that says what it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pml.processors.workflow.obedience import RUNS_LIVE, RUNS_REMEMBERED
from pml.schemas.base import Coordinate
from pml.schemas.calls import CallEnded, CallError, ToolResult
from pml.schemas.errors import BrokerUnavailable, PMLError
from pml.schemas.events import CommandRejected, Event, TaskCompleted, TaskFailed
from pml.streams.client import Submission
from pml.streams.live_events import Watcher
from pml.streams.mcp_server.door import LOCAL_AGENT, Call, Door
from pml.streams.mcp_server.proxy.calling import Calling
from pml.streams.mcp_server.session_parts import part_name
from tests.streams.mcp_server.clients import settings_in
from tests.streams.mcp_server.proxy.test_answers import asked, event

Answer = Callable[[dict[str, Any]], list[Event]]
AT = Coordinate(topic="pml.tool-outcomes", partition=1, offset=7)
SAID = ToolResult(content=[{"type": "text", "text": "no such file"}])


class Log:
    """Takes commands, and lets who watches see what follows from each."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.started: list[dict[str, Any]] = []
        self.workflows: list[dict[str, Any]] = []
        self.watchers: list[Watcher] = []
        self.outcome_of = "c"

    @asynccontextmanager
    async def watching(self, tenant: str, session_id: str, on_event: Any) -> AsyncIterator[Watcher]:
        watcher = Watcher(on_event)
        self.watchers.append(watcher)
        try:
            yield watcher
        finally:
            self.watchers.remove(watcher)

    async def start_run(self, workflow: Any, **fields: Any) -> Submission:
        self.started.append(fields)
        self.workflows.append(workflow)
        answer = self._answers.pop(0) if self._answers else nothing
        for told in answer(fields):
            for watcher in self.watchers:
                watcher.see(told)
        return Submission(fields["run_id"], fields["session_id"], fields["command_id"], 0, 1, "local", 1)

    async def result(self, coordinate: Coordinate) -> ToolResult:
        assert coordinate == AT
        return ToolResult(content=[], structured={"a": 1})

    async def outcome(self, coordinate: Coordinate) -> CallEnded:
        assert coordinate == AT
        error = CallError(code="TOOL_ERROR", message="no such file")
        return CallEnded(
            call_id=self.outcome_of, tenant="t", session_id="s", status="error", result=SAID, error=error
        )


def nothing(fields: dict[str, Any]) -> list[Event]:
    return []


def completed(fields: dict[str, Any]) -> list[Event]:
    data = TaskCompleted(
        task_id="call",
        attempt=1,
        layer=0,
        tool="a:b",
        result_ref=AT,
        result_hash="",
        result_bytes=1,
        as_of="",
        served_by="speculation",
    )
    return [event(data, run_id=fields["run_id"])]


def failed(fields: dict[str, Any]) -> list[Event]:
    error = CallError(code="TIMEOUT", type="TIMEOUT", message="too late")
    data = TaskFailed(task_id="call", attempt=1, layer=0, tool="a:b", call_id="c", error=error)
    return [event(data, run_id=fields["run_id"])]


def full(fields: dict[str, Any], reason: str = RUNS_REMEMBERED) -> list[Event]:
    details = {"reason": reason}
    error = {"code": "SESSION_FULL", "message": "full", "retryable": True, "details": details}
    data = CommandRejected(command_type="run.start", error=error)
    return [event(data, run_id=None, command_id=fields["command_id"])]


class Client:
    """A door with this log behind it, and what its client is told of progress."""

    def __init__(self, folder: Path, log: Log) -> None:
        self.steps: list[float] = []
        self.calling = Calling(settings_in(folder), wait_s=0.05)
        self.calling._events = self.calling._results = log  # type: ignore[assignment]
        producer: Any = log
        finder: Any = None
        self.door = Door(settings_in(folder), producer, finder, lambda context: LOCAL_AGENT)

    async def call(self, session: str | None = "ses_1", with_pml: bool = True) -> Any:
        async def report(progress: float, total: float | None, message: str | None) -> None:
            self.steps.append(progress)

        call = Call(self.door, LOCAL_AGENT, report, mcp_session=session)
        return await self.calling.call(call, "a:b", {"x": 1}, with_pml)


async def test_a_call_is_answered_with_the_whole_result(tmp_path: Path) -> None:
    log = Log(completed)
    client = Client(tmp_path, log)
    answer = await client.call()

    assert (answer.structured_content, answer.is_error, client.steps) == ({"a": 1}, False, [1])
    assert log.started[0]["session_id"] == "ses_1"
    assert client.door.remembered.find("local", log.started[0]["run_id"]) == "ses_1"
    assert log.watchers == []


async def test_a_tool_that_says_itself_that_it_failed_is_answered_with_what_it_said(tmp_path: Path) -> None:
    answer = await Client(tmp_path, Log(failed)).call()
    assert (answer.is_error, answer.content[0].text) == (True, "no such file")


async def test_the_outcome_of_another_call_is_not_the_answer(tmp_path: Path) -> None:
    log = Log(failed)
    log.outcome_of = "other"
    with pytest.raises(PMLError) as raised:
        await Client(tmp_path, log).call()
    assert (raised.value.code, raised.value.details["run_id"]) == ("TIMEOUT", log.started[0]["run_id"])


async def test_a_session_that_is_full_goes_on_in_its_next_part(tmp_path: Path) -> None:
    log = Log(full, full, completed, completed)
    client = Client(tmp_path, log)
    await client.call()
    await client.call()

    second, third = part_name("ses_1", 2), part_name("ses_1", 3)
    assert [start["session_id"] for start in log.started] == ["ses_1", second, third, third]
    assert len({start["run_id"] for start in log.started}) == 4
    options = [workflow.get("options", {}).get("speculation", "on") for workflow in log.workflows]
    assert options == ["on", "off", "off", "off"]


async def test_a_session_in_which_too_many_runs_go_on_is_asked_again(tmp_path: Path) -> None:
    log = Log(lambda fields: full(fields, RUNS_LIVE), completed)
    client = Client(tmp_path, log)
    client.calling._wait_s = 5
    await client.call()

    assert [start["session_id"] for start in log.started] == ["ses_1", "ses_1"]


async def test_without_a_session_a_call_is_its_own(tmp_path: Path) -> None:
    log = Log(completed, full)
    client = Client(tmp_path, log)
    await client.call(session=None)
    with pytest.raises(PMLError) as raised:
        await client.call(session=None)

    assert raised.value.code == "SESSION_FULL"
    assert [start["session_id"] for start in log.started] == [start["run_id"] for start in log.started]


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (nothing, "STILL_RUNNING"),
        (lambda fields: [event(asked(), run_id=fields["run_id"])], "APPROVAL_PENDING"),
    ],
)
async def test_who_waits_too_long_is_told_where_the_result_will_be(
    tmp_path: Path, answer: Answer, code: str
) -> None:
    log = Log(answer)
    with pytest.raises(PMLError) as raised:
        await Client(tmp_path, log).call()

    assert raised.value.code == code
    assert raised.value.details["run_id"] == log.started[0]["run_id"]
    assert raised.value.details["session_id"] == "ses_1"


async def test_who_is_cancelled_leaves_nothing_behind_and_sends_nothing(tmp_path: Path) -> None:
    log = Log()
    client = Client(tmp_path, log)
    waiting = asyncio.create_task(client.call())
    while not log.started:
        await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert len(log.started) == 1


async def test_a_log_that_is_lost_ends_the_wait(tmp_path: Path) -> None:
    log = Log()
    waiting = asyncio.create_task(Client(tmp_path, log).call())
    while not log.watchers:
        await asyncio.sleep(0)
    log.watchers[0].fail(BrokerUnavailable("gone"))
    with pytest.raises(BrokerUnavailable):
        await waiting
