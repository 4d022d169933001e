"""The orchestrator's clock."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import orjson
import pytest

from pml.processors.workflow import deadline
from pml.streams.log.append import Outgoing
from pml.streams.orchestrator import deadlines as deadlines_module
from pml.streams.orchestrator.deadlines import Deadlines
from tests.streams.orchestrator.test_table import ended, started

KEY = b"local/s"


class Clock:
    def __init__(self) -> None:
        self.ms = 0
        self.sent: list[Outgoing] = []

    def now_ms(self) -> int:
        return self.ms

    async def publish(self, commands: list[Outgoing]) -> None:
        self.sent += commands


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def armed(clock: Clock) -> Deadlines:
    return Deadlines(clock.publish, clock.now_ms)


def test_the_earliest_deadline_is_published_when_it_is_due_and_not_before(
    clock: Clock, armed: Deadlines
) -> None:
    session, _ = started()
    due = deadline(session)
    assert due is not None
    armed.arm(KEY, session)
    clock.ms = due.due_at_ms - 1
    assert armed.take_due() == []
    clock.ms = due.due_at_ms
    (command,) = armed.take_due()
    assert command.key == KEY
    said = orjson.loads(command.value or b"")
    assert (said["type"], said["session_id"]) == ("deadline.reach", "s")
    assert said["data"]["due_at_ms"] == due.due_at_ms


def test_a_deadline_that_still_stands_is_published_again_ever_more_slowly(
    clock: Clock, armed: Deadlines
) -> None:
    session, _ = started()
    due = deadline(session)
    assert due is not None
    armed.arm(KEY, session)
    published: list[int] = []
    for second in range(200):
        clock.ms = due.due_at_ms + second * 1000
        if armed.take_due():
            published.append(second)
        armed.arm(KEY, session)
    assert published == [0, 1, 3, 7, 15, 31, 63, 123, 183]


def test_a_session_that_ended_has_no_deadline(clock: Clock, armed: Deadlines) -> None:
    session, _ = started()
    armed.arm(KEY, session)
    armed.arm(KEY, ended(session))
    clock.ms = 2**60
    assert (armed.take_due(), len(armed)) == ([], 0)


def test_so_many_at_once_and_the_rest_after_them(clock: Clock, armed: Deadlines) -> None:
    session, _ = started()
    for number in range(450):
        armed.arm(b"local/%d" % number, replace(session, session_id=str(number)))
    clock.ms = 2**50
    assert [len(armed.take_due()) for _ in range(4)] == [200, 200, 50, 0]


def test_deadlines_that_no_longer_stand_take_no_room(
    armed: Deadlines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadlines_module, "SPARE", 10)
    session, _ = started()
    run = session.runs["r"]
    for number in range(500):
        moved = replace(session, runs={"r": replace(run, tasks={}, deadline_ms=number)})
        armed.arm(KEY, moved)
    assert len(armed._heap) <= 13


async def test_it_wakes_when_something_earlier_is_armed(clock: Clock, armed: Deadlines) -> None:
    running = asyncio.create_task(armed.run())
    await asyncio.sleep(0)
    session, _ = started()
    clock.ms = 2**50
    armed.arm(KEY, session)
    for _ in range(100):
        await asyncio.sleep(0.001)
        if clock.sent:
            break
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert len(clock.sent) == 1


async def test_it_sleeps_on_when_something_later_is_armed(clock: Clock, armed: Deadlines) -> None:
    session, _ = started()
    armed.arm(KEY, session)
    running = asyncio.create_task(armed.run())
    await asyncio.sleep(0)
    run = session.runs["r"]
    later = replace(session, runs={"r": replace(run, tasks={}, deadline_ms=2**50)})
    armed.arm(KEY, later)
    armed.arm(b"local/other", later)
    assert not armed._changed.is_set()
    armed.arm(KEY, replace(session, runs={"r": replace(run, tasks={}, deadline_ms=1)}))
    assert armed._changed.is_set()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
