"""`pml:step`: a program that is no DAG as a service of the server `pml` (ADR 14).

A step is asked for by coordinates: the program and its context rest in a command, earlier calls and results
in `pml.tool-outcomes`. Only the newest results are read for a program that stands here at its wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from pml.processors.sandboxing.answers import calls_of, step_answer
from pml.processors.workflow import Address
from pml.processors.workflow.draft import full_context
from pml.processors.workflow.folding import address_of
from pml.processors.workflow.inputs import payload_value
from pml.schemas.base import Coordinate
from pml.schemas.calls import CallRun
from pml.schemas.errors import PayloadGone
from pml.schemas.stepping import Given, ProgramError, StepAnswer, StepRequest, StepTaken
from pml.streams.log.tail import Tails
from pml.streams.orchestrator.payloads import PayloadCache
from pml.streams.sandbox.errors import TooManyCalls
from pml.streams.sandbox.programs import Earlier, Source, Stepping
from pml.streams.settings import Settings

# The results of a few steps; what is read again for a program that was forgotten comes from the topic.
CACHE_BYTES = 32 * 1024 * 1024


class Steps:
    """Runs programs in sandboxes, and reads what they need."""

    def __init__(self, settings: Settings, tails: Tails, programs: Stepping) -> None:
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
            SourceError, WorkflowInvalid: the program cannot begin.
        """
        request = StepRequest.model_validate(run.arguments)
        said = await self._programs.step(
            f"{run.tenant}/{run.session_id}/{run.run_id}",
            request.taken,
            newest=lambda: self._given(request.taken[-1].results),
            again=lambda: self._from_its_beginning(request),
        )
        before = sum(len(step.results) for step in request.taken)
        if before + len(said.get("calls", ())) > self._calls_max:
            raise TooManyCalls(f"the program makes more than {self._calls_max} calls (sandbox.calls_max)")
        return _answer(said, before).model_dump(mode="json")

    async def tend(self) -> None:
        """End the programs that have stood for too long."""
        await self._programs.tend()

    async def close(self) -> None:
        """End every program."""
        await self._programs.close()

    async def _given(self, results: Sequence[Given]) -> list[dict[str, Any]]:
        """What calls came to, in full."""
        values = await self._values([item.result for item in results if item.result is not None])
        return [_told(item, values) for item in results]

    async def _from_its_beginning(self, request: StepRequest) -> tuple[Source, list[Earlier]]:
        """The program, and every step that it took."""
        values = await self._values([request.start, *_read_by(request.taken)])
        start = values[address_of(request.start)]
        if start.code is None:
            raise PayloadGone("the command that began the run has no program")
        source = Source(request.language, start.code.source, full_context(start))
        return source, [_earlier(step, values) for step in request.taken]

    async def _values(self, coordinates: Sequence[Coordinate]) -> Mapping[Address, Any]:
        wanted = {address_of(item) for item in coordinates}
        found = await self._payloads.get(wanted)
        if len(found) < len(wanted):
            raise PayloadGone("a result that the program needs is past its retention; submit it again")
        return found


def _read_by(taken: Sequence[StepTaken]) -> list[Coordinate]:
    results = (item.result for step in taken for item in step.results)
    return [*(step.answer for step in taken), *(item for item in results if item is not None)]


def _earlier(step: StepTaken, values: Mapping[Address, Any]) -> Earlier:
    answer = StepAnswer.model_validate(values[address_of(step.answer)].structured)
    return Earlier(calls_of(answer), [_told(item, values) for item in step.results])


def _told(item: Given, values: Mapping[Address, Any]) -> dict[str, Any]:
    if item.error is not None:
        return {"error": item.error.model_dump()}
    assert item.result is not None
    return {"value": payload_value(values[address_of(item.result)])}


def _answer(said: Mapping[str, Any], calls_before: int) -> StepAnswer:
    try:
        return step_answer(said, calls_before)
    except ValidationError as error:
        told = f"the program calls what cannot be a tool: {error.errors()[0]['msg']}"
        return StepAnswer(error=ProgramError(code="PROGRAM_ERROR", message=told))
