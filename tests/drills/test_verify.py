"""A bridge that dies in the middle of a write: the tool that its entry declares says what became of it."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from pml.schemas.codec import decode_event
from pml.schemas.commands import RunRetry
from pml.schemas.events import Event
from pml.streams.client import IntentProducer
from tests.drills.verdict import read_topic
from tests.drills.workshop import PERMISSIONS, Workshop, lines
from tests.fixtures.patience import PATIENCE_S

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]
VERIFY = {"tool": "ledger:added", "arguments": {"name": "{name}"}, "done": "result.added", "after_s": 1}
WRITE_AND_LOOK: dict[str, Any] = {
    "name": "write-and-look",
    "tasks": [
        {
            "id": "effect",
            "tool": "ledger:add",
            "arguments": {"name": {"type": "parameter", "parameter_name": "name"}},
        },
        {"id": "after", "tool": "ledger:look", "arguments": {"name": "c"}, "depends_on": ["effect"]},
    ],
}


def declare(workshop: Workshop) -> None:
    """The operator says how to find out whether `add` happened."""
    tools = PERMISSIONS["tools"]
    entries = {**tools, "ledger:add": {**tools["ledger:add"], "verify": VERIFY}}
    file = workshop.settings.mcp_permissions
    file.write_bytes(orjson.dumps({"version": 1, "tools": entries}))


async def killed_while_it_writes(workshop: Workshop, point: str, name: str) -> str:
    """The bridge dies with the write; a new one begins. The run's id."""
    workshop.kill("bridge")
    workshop.start("bridge", crash_at=point)
    await workshop.until_ready("bridge")
    async with IntentProducer(workshop.settings) as producer:
        run_id = (await producer.start_run(WRITE_AND_LOOK, context={"name": name})).run_id
    assert await workshop.until_dead("bridge") == -signal.SIGKILL
    workshop.start("bridge")
    return run_id


async def events_of(workshop: Workshop, run_id: str, last: str) -> list[Event]:
    """The events of a run, as soon as one of this type is there."""
    give_up = time.monotonic() + PATIENCE_S
    while True:
        records = await read_topic(workshop, workshop.settings.topics.events)
        events = [decode_event(record.value) for record in records]
        mine = [event for event in events if event.run_id == run_id]
        if any(event.type == last for event in mine):
            return mine
        assert time.monotonic() < give_up, f"{[event.type for event in mine]} {workshop.tail('bridge')}"
        await asyncio.sleep(0.2)


async def test_a_write_that_was_done_is_not_done_again_and_its_run_completes(
    workshop: Workshop, say: Callable[[str], None]
) -> None:
    declare(workshop)
    run_id = await killed_while_it_writes(workshop, "bridge.after_call", "done")
    events = await events_of(workshop, run_id, "run.completed")
    types = [event.type for event in events]
    said: Any = next(event.data for event in events if event.type == "task.resolved")
    assert types.count("task.unknown") == types.count("task.verifying") == types.count("task.resolved") == 1
    assert (said.decided_by, said.resolution, said.result["added"]) == ("verify:ledger:added", "done", True)
    happened = [line["tool"] for line in lines(workshop.ledger) if line["name"] == "done"]
    assert happened == ["add", "added"]
    say(f"killed after its write: {types}")


async def test_a_write_that_never_ran_is_known_not_to_have_and_may_be_retried(
    workshop: Workshop, say: Callable[[str], None]
) -> None:
    declare(workshop)
    run_id = await killed_while_it_writes(workshop, "bridge.after_claim", "lost")
    events = await events_of(workshop, run_id, "task.resolved")
    said: Any = events[-1].data
    assert (said.decided_by, said.resolution) == ("verify:ledger:added", "not_done")
    assert [line["tool"] for line in lines(workshop.ledger) if line["name"] == "lost"] == ["added"]
    async with IntentProducer(workshop.settings) as producer:
        await producer.decide(run_id, RunRetry(), session_id=run_id)
    types = [event.type for event in await events_of(workshop, run_id, "run.completed")]
    assert [line["tool"] for line in lines(workshop.ledger) if line["name"] == "lost"] == ["added", "add"]
    say(f"killed before its write: {types}")
