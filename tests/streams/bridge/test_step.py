"""`pml:step` on a real broker: programs and results are read where they rest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from pml.processors.capabilities.inlining import Find
from pml.schemas.base import Coordinate
from pml.schemas.calls import CallEnded, ToolResult
from pml.schemas.catalog import Capability
from pml.schemas.codec import encode
from pml.schemas.commands import Code, Command, RunStart
from pml.schemas.errors import PayloadGone, WorkflowInvalid
from pml.schemas.identifiers import session_key
from pml.schemas.stepping import (
    STEP_TOOL,
    Given,
    GivenError,
    Linked,
    SandboxProgram,
    StepAnswer,
    StepRequest,
    StepTaken,
)
from pml.schemas.structure import StructureParameter
from pml.schemas.workflow import Parameter, Reference, Task, Workflow
from pml.streams.bridge.reaper import Reaper
from pml.streams.bridge.step import Steps
from pml.streams.connection import client_options
from pml.streams.log.tail import Tails
from pml.streams.sandbox.errors import TooManyCalls
from pml.streams.sandbox.programs import Programs
from pml.streams.settings import Settings
from tests.streams.bridge.running import World, run

pytestmark = [pytest.mark.integration]

PROGRAM = """
seen = []
while len(seen) < rounds:
    page = await mcp.pages.read(number=len(seen))
    seen.append(page.text)
return seen
"""
CALLING = """
found = await asyncio.gather(capabilities.twice(number=rounds), mcp.pages.read(number=0))
while False:
    pass
return [found[0], found[1].text, (await capabilities.lines(rounds=1))]
"""
TWICE = Capability(
    tenant="local",
    name="twice",
    capability_id="cap_1",
    parameters=(StructureParameter(name="number"),),
    tasks=(
        Task(id="n1", tool="pages:read", arguments={"number": Parameter(parameter_name="number")}),
        Task(id="n2", tool="pages:read", arguments={"number": Reference(expression="n1.text")}),
    ),
    result=Reference(expression="n2.text"),
)


class Known:
    """One tenant has one capability."""

    async def workflow(self, tenant: str, workflow: Workflow) -> Workflow:
        """Nothing here is inlined as a whole."""
        raise NotImplementedError

    async def look(self, tenant: str, question: Callable[[Find], Any]) -> Any:
        """As the bridge looks them up."""
        return question({"twice": TWICE}.get if tenant == "local" else lambda name: None)


KEY = session_key("local", "s1")
ROUNDS = (StructureParameter(name="rounds"),)


class Steppers:
    """A service and what it reads."""

    def __init__(self, world: World, steps: Steps) -> None:
        self.world, self.steps = world, steps
        self.taken: list[StepTaken] = []
        self.begun: Coordinate | None = None

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

    async def program(
        self, rounds: int, source: str = PROGRAM, linked: tuple[Linked, ...] = ()
    ) -> Coordinate:
        """A program in `pml.commands`, and the answer about it."""
        data = RunStart(code=Code(source=source, language="python"), context={"rounds": rounds})
        program = SandboxProgram(language="python", source=source, linked=linked)
        self.begun = await self.rest({"program": program.model_dump(mode="json")})
        command = Command(type="run.start", command_id="c", session_id="s1", run_id="run_1", data=data)
        topic = self.world.topics.commands
        offset = await self.world.send_raw(topic, encode(command), KEY, 0)
        return Coordinate(topic=topic, partition=0, offset=offset)

    async def step(self, start: Coordinate) -> StepAnswer:
        """One step, whose calls are answered."""
        assert self.begun is not None
        request = StepRequest(start=start, program=self.begun, taken=tuple(self.taken))
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
    steps = Steps(world.settings, tails, in_sandboxes(world.settings, reaper), Known())
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
    steps = Steps(settings, tails, in_sandboxes(settings, reaper), Known())
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


@pytest.mark.parametrize("forgotten", [False, True])
async def test_a_program_calls_capabilities_of_its_tenant(steppers: Steppers, forgotten: bool) -> None:
    lines = Linked(capability_id="cap_2", names=("lines",), source=PROGRAM, parameters=ROUNDS)
    start = await steppers.program(7, CALLING, (lines,))
    answer = await steppers.step(start)
    assert answer.workflow is not None
    assert [task.id for task in answer.workflow.tasks] == ["c1__n1", "c1__n2", "n2"]
    if forgotten:
        await steppers.steps.close()
    inner = await steppers.step(start)
    assert inner.workflow is not None
    assert [task.id for task in inner.workflow.tasks] == ["n4"]
    if forgotten:
        await steppers.steps.close()
    assert (await steppers.step(start)).value == ["page of c1__n2", "page of n2", ["page of n4"]]


async def test_an_unknown_capability_ends_its_program(steppers: Steppers) -> None:
    start = await steppers.program(1, "while True:\n    await capabilities.nobody()")
    with pytest.raises(WorkflowInvalid, match="there is no nobody"):
        await steppers.step(start)
