"""`pml:step`: a program that is no DAG as a service of the server `pml` (ADR 14).

A step is asked for by coordinates: the program and its context rest in a command, earlier calls and results
in `pml.tool-outcomes`. Only the newest results are read for a program that stands here at its wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from pml.processors.capabilities.inlining import Find
from pml.processors.capabilities.unfolding import done_after, next_part
from pml.processors.sandboxing.answers import calls_capabilities, calls_of, results_of, step_answer
from pml.processors.workflow import Address
from pml.processors.workflow.draft import full_context
from pml.processors.workflow.folding import address_of
from pml.processors.workflow.inputs import payload_value
from pml.schemas.base import Coordinate
from pml.schemas.calls import CallRun
from pml.schemas.errors import PayloadGone
from pml.schemas.stepping import Given, ProgramError, SandboxProgram, StepAnswer, StepRequest, StepTaken
from pml.schemas.structure import Structure
from pml.streams.bridge.analyse import Capabilities
from pml.streams.log.tail import Tails
from pml.streams.orchestrator.payloads import PayloadCache
from pml.streams.sandbox.errors import TooManyCalls
from pml.streams.sandbox.programs import Earlier, Said, Source, Stepping
from pml.streams.settings import Settings

# The results of a few steps; what is read again for a program that was forgotten comes from the topic.
CACHE_BYTES = 32 * 1024 * 1024


class Steps:
    """Runs programs in sandboxes, and reads what they need."""

    def __init__(
        self, settings: Settings, tails: Tails, programs: Stepping, capabilities: Capabilities
    ) -> None:
        self._capabilities = capabilities
        self._calls_max = settings.sandbox.calls_max
        self._payloads = PayloadCache(settings.topics, tails, CACHE_BYTES)
        self._programs = programs

    async def __call__(self, run: CallRun) -> dict[str, Any]:
        """The answer, as structured content.

        Raises:
            ValidationError: the arguments are no `StepRequest`.
            PayloadGone: the program, or a result that it needs, is past its retention.
            BrokerUnavailable: the broker does not answer.
            SandboxMissing, SandboxTimeout, SandboxDied, OutputTooLarge, NotDeterministic, TooManyCalls: as
                they say.
            SourceError, WorkflowInvalid: the program cannot begin, or calls a capability that it cannot.
        """
        request = StepRequest.model_validate(run.arguments)
        program = await self._program(request)
        if program.structure is not None:
            return (await self._unfolded(program.structure, request)).model_dump(mode="json")
        said = await self._programs.step(
            f"{run.tenant}/{run.session_id}/{run.run_id}",
            request.taken,
            newest=lambda: self._newest(request.taken[-1]),
            again=lambda: self._from_its_beginning(program, request),
        )
        before = sum(len(step.results) for step in request.taken)
        if before + len(said.get("calls", ())) > self._calls_max:
            raise TooManyCalls(f"the program makes more than {self._calls_max} calls (sandbox.calls_max)")
        return (await self._answer(run.tenant, said, before)).model_dump(mode="json")

    async def tend(self) -> None:
        """End the programs that have stood for too long."""
        await self._programs.tend()

    async def close(self) -> None:
        """End every program."""
        await self._programs.close()

    async def _answer(self, tenant: str, said: Said, calls_before: int) -> StepAnswer:
        if not calls_capabilities(said):
            return _answer(said, calls_before, lambda name: None)
        return await self._capabilities.look(tenant, lambda find: _answer(said, calls_before, find))

    async def _newest(self, step: StepTaken) -> list[dict[str, Any]]:
        """What the calls of a step came to, in full."""
        return list(_earlier(step, await self._values(_read_by([step]))).results)

    async def _program(self, request: StepRequest) -> SandboxProgram:
        """The program as it was analysed, or found in the catalog."""
        values = await self._values([request.program])
        return SandboxProgram.model_validate(values[address_of(request.program)].structured["program"])

    async def _unfolded(self, structure: Structure, request: StepRequest) -> StepAnswer:
        """The next part of a program with loops over results."""
        values = await self._values([request.start, *_read_by(request.taken)])
        steps = (
            (StepAnswer.model_validate(values[address_of(step.answer)].structured), step)
            for step in request.taken
        )
        done = done_after(steps, lambda place: payload_value(values[address_of(place)]))
        context = full_context(values[address_of(request.start)])
        return next_part(structure, context, done)

    async def _from_its_beginning(
        self, program: SandboxProgram, request: StepRequest
    ) -> tuple[Source, list[Earlier]]:
        """The program with its context, and every step that it took."""
        values = await self._values([request.start, *_read_by(request.taken)])
        context = full_context(values[address_of(request.start)])
        return Source(program, context), [_earlier(step, values) for step in request.taken]

    async def _values(self, coordinates: Sequence[Coordinate]) -> Mapping[Address, Any]:
        wanted = {address_of(item) for item in coordinates}
        found = await self._payloads.get(wanted)
        if len(found) < len(wanted):
            raise PayloadGone("a result that the program needs is past its retention; submit it again")
        return found


def _read_by(taken: Iterable[StepTaken]) -> list[Coordinate]:
    steps = tuple(taken)
    results = (item.result for step in steps for item in step.results)
    return [*(step.answer for step in steps), *(item for item in results if item is not None)]


def _earlier(step: StepTaken, values: Mapping[Address, Any]) -> Earlier:
    answer = StepAnswer.model_validate(values[address_of(step.answer)].structured)
    given = [_told(item, values) for item in step.results]
    return Earlier(calls_of(answer), results_of(answer, given))


def _told(item: Given, values: Mapping[Address, Any]) -> dict[str, Any]:
    if item.error is not None:
        return {"error": item.error.model_dump()}
    assert item.result is not None
    return {"value": payload_value(values[address_of(item.result)])}


def _answer(said: Said, calls_before: int, find: Find) -> StepAnswer:
    try:
        return step_answer(said, calls_before, find)
    except ValidationError as error:
        told = f"the program calls what cannot be a tool: {error.errors()[0]['msg']}"
        return StepAnswer(error=ProgramError(code="PROGRAM_ERROR", message=told))
