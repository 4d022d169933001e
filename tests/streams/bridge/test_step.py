"""`pml:step` on a real broker: programs and results are read where they rest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pml.schemas.base import Coordinate
from pml.schemas.calls import CallEnded, ToolResult
from pml.schemas.codec import encode
from pml.schemas.commands import Code, Command, RunStart
from pml.schemas.errors import PayloadGone
from pml.schemas.identifiers import session_key
from pml.schemas.stepping import STEP_TOOL, Given, GivenError, StepAnswer, StepRequest, StepTaken
from pml.streams.bridge.reaper import Reaper
from pml.streams.bridge.step import Steps
from pml.streams.connection import client_options
from pml.streams.log.tail import Tails
from pml.streams.sandbox.errors import TooManyCalls
from pml.streams.sandbox.programs import Programs
from pml.streams.settings import Settings
from tests.streams.bridge.running import World, run

pytestmark = [pytest.mark.integration, pytest.mark.timeout(90)]

PROGRAM = """
seen = []
while len(seen) < rounds:
    page = await mcp.pages.read(number=len(seen))
    seen.append(page.text)
return seen
"""
KEY = session_key("local", "s1")


class Steppers:
    """A service and what it reads."""

    def __init__(self, world: World, steps: Steps) -> None:
        self.world, self.steps = world, steps
        self.taken: list[StepTaken] = []

    async def rest(self, result: Any) -> Coordinate:
        """A result in `pml.tool-outcomes`."""
        topic = self.world.topics.tool_outcomes
        ended = CallEnded(
            call_id="call_1",
            tenant="local",
            session_id="s1",
            status="ok",
            result=ToolResult(structured=result),
        )
        offset = await self.world.send_raw(topic, encode(ended), KEY, 0)
        return Coordinate(topic=topic, partition=0, offset=offset)

    async def program(self, rounds: int) -> Coordinate:
        """A program in `pml.commands`."""
        data = RunStart(code=Code(source=PROGRAM, language="python"), context={"rounds": rounds})
        command = Command(type="run.start", command_id="c", session_id="s1", run_id="run_1", data=data)
        topic = self.world.topics.commands
        offset = await self.world.send_raw(topic, encode(command), KEY, 0)
        return Coordinate(topic=topic, partition=0, offset=offset)

    async def step(self, start: Coordinate) -> StepAnswer:
        """One step, whose calls are answered."""
        request = StepRequest(language="python", start=start, taken=tuple(self.taken))
        call = run(STEP_TOOL, arguments=request.model_dump(mode="json"))
        answer = StepAnswer.model_validate(await self.steps(call))
        if answer.workflow is not None:
            place = await self.rest(answer.model_dump(mode="json"))
            results = [
                Given(result=await self.rest({"text": f"page of {task.id}"}))
                for task in answer.workflow.tasks
            ]
            self.taken.append(StepTaken(answer=place, results=tuple(results)))
        return answer


def in_sandboxes(settings: Settings, reaper: Reaper) -> Programs:
    return Programs(settings.sandbox, reaper, settings.data_dir / "interpreters")


@pytest.fixture
async def steppers(kafka: str, tmp_path: Path) -> AsyncIterator[Steppers]:
    world = World(kafka, tmp_path)
    await world.open()
    tails, reaper = Tails(client_options(world.settings)), Reaper()
    await tails.start()
    steps = Steps(world.settings, tails, in_sandboxes(world.settings, reaper))
    try:
        yield Steppers(world, steps)
    finally:
        await steps.close()
        await tails.stop()
        await world.close()
        await asyncio.to_thread(reaper.close)


async def test_a_program_goes_on_with_what_rests_and_after_it_was_forgotten(steppers: Steppers) -> None:
    start = await steppers.program(rounds=3)
    names = []
    for forgotten in (False, True, True):
        answer = await steppers.step(start)
        assert answer.workflow is not None
        names += [(task.id, task.tool) for task in answer.workflow.tasks]
        if forgotten:
            await steppers.steps.close()
    assert names == [("n1", "pages:read"), ("n2", "pages:read"), ("n3", "pages:read")]
    assert (await steppers.step(start)).value == ["page of n1", "page of n2", "page of n3"]


async def test_an_error_of_a_call_ends_a_program_that_does_not_catch_it(steppers: Steppers) -> None:
    start = await steppers.program(rounds=1)
    await steppers.step(start)
    error = GivenError(code="TOOL_ERROR", message="it is broken")
    steppers.taken[0] = steppers.taken[0].model_copy(update={"results": (Given(error=error),)})
    answer = await steppers.step(start)
    assert answer.error is not None
    assert (answer.error.code, answer.error.line) == ("PROGRAM_ERROR", 4)
    assert "TOOL_ERROR: it is broken" in answer.error.message


async def test_what_is_past_its_retention_is_told(steppers: Steppers) -> None:
    start = await steppers.program(rounds=1)
    with pytest.raises(PayloadGone):
        await steppers.step(start.model_copy(update={"offset": start.offset + 1000}))


async def test_a_program_makes_no_more_calls_than_the_setting_says(kafka: str, tmp_path: Path) -> None:
    world = World(kafka, tmp_path)
    settings = world.settings.model_copy(
        update={"sandbox": world.settings.sandbox.model_copy(update={"calls_max": 2})}
    )
    await world.open()
    tails, reaper = Tails(client_options(settings)), Reaper()
    await tails.start()
    steps = Steps(settings, tails, in_sandboxes(settings, reaper))
    try:
        few = Steppers(world, steps)
        start = await few.program(rounds=3)
        await few.step(start)
        await few.step(start)
        with pytest.raises(TooManyCalls):
            await few.step(start)
    finally:
        await steps.close()
        await tails.stop()
        await world.close()
        await asyncio.to_thread(reaper.close)
