"""Which session a call is run in where one ends just then, and answers that come late."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from pml.schemas.calls import CallEnded, CallRun
from pml.schemas.errors import BrokerUnavailable
from pml.streams.bridge import server as server_module
from pml.streams.bridge.call import Call
from pml.streams.bridge.claims import Claims
from pml.streams.bridge.runner import Runner
from pml.streams.bridge.server_specs import StdioServer
from pml.streams.log.append import Appender
from pml.streams.log.tail import Tails
from tests.fixtures.patience import PATIENCE_S
from tests.streams.bridge.conftest import EventLog, NewServer
from tests.streams.bridge.running import run


async def nobody(_: CallEnded) -> None:
    raise AssertionError("no answer comes late")


def claims() -> Claims:
    return Claims("claims", 0, "me", Appender({}), Tails({}))


def called(message: CallRun) -> Call:
    return Call.of(message, 0, 0, 10)


async def test_a_session_that_is_ended_for_idleness_as_a_call_comes_is_followed_by_another(
    new_server: NewServer, trouble: StdioServer, events: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = new_server(trouble.model_copy(update={"isolation": "session"}))
    runner = Runner({"trouble": server}, 64 * 1024, nobody)
    message = run("trouble:echo", arguments={"text": "x"})
    first = await runner.run(called(message), claims())
    monkeypatch.setattr(server_module, "IDLE_S", -1.0)
    _, second = await asyncio.gather(server.end_idle(), runner.run(called(message), claims()))
    assert first is not None
    assert second is not None
    assert (first.status, second.status) == ("ok", "ok")
    assert len({entry["pid"] for entry in events.entries("echo")}) == 2
    await server.close()


async def test_a_call_of_a_server_at_its_end_is_not_begun_anew(
    new_server: NewServer, trouble: StdioServer, events: EventLog
) -> None:
    server = new_server(trouble)
    runner = Runner({"trouble": server}, 64 * 1024, nobody)
    message = run("trouble:echo", arguments={"text": "x"})
    assert (await runner.run(called(message), claims())) is not None
    ending = asyncio.create_task(server.close())
    await asyncio.sleep(0)
    answer = await runner.run(called(message), claims())
    await ending
    assert answer is not None
    assert answer.status == "not_started"
    assert len(events.entries("echo")) == 1


async def test_a_late_answer_that_cannot_be_sent_is_told(new_server: NewServer, trouble: StdioServer) -> None:
    sending = asyncio.Event()

    async def away(_: CallEnded) -> None:
        sending.set()
        raise BrokerUnavailable("an answer could not be sent")

    async def claim(*_: Any) -> bool:
        return True

    server = new_server(trouble)
    runner = Runner({"trouble": server}, 64 * 1024, away)
    message = run("trouble:count", arguments={"seconds": 0.5}, timeout_ms=100)
    with capture_logs() as told:
        answer = await runner.run(called(message), cast(Claims, SimpleNamespace(claim=claim)))
        await asyncio.wait_for(sending.wait(), PATIENCE_S)
        await runner.close()
    assert answer is not None
    assert answer.error is not None
    assert answer.error.type == "TIMEOUT"
    (line,) = (line for line in told if line["log_level"] == "error")
    assert line["event"].startswith("late answer lost")
    assert (line["call_id"], line["error"]) == (message.call_id, "an answer could not be sent")
    await server.close()
