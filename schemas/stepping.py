"""What `pml:step` is asked and answers: a program that is no DAG, from one wait to the next (ADR 14)."""

from __future__ import annotations

from pml.schemas.base import Coordinate, Json, Record
from pml.schemas.structure import Language, Structure, StructureParameter
from pml.schemas.workflow import Argument, Workflow

STEP_TOOL = "pml:step"


class Linked(Record):
    """A capability that is no DAG either, and runs inside of a program that calls it by `names`."""

    capability_id: str
    names: tuple[str, ...]
    source: str
    parameters: tuple[StructureParameter, ...] = ()


class SandboxProgram(Record):
    """A program that is no DAG, for these `reasons`; all that it is linked with is of its language.

    One with a `structure` is a DAG as soon as it is known how often its loops repeat: that is unfolded, and
    no sandbox runs it. `tools` are those that it is known to call, also through capabilities.
    """

    language: Language
    source: str
    reasons: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    structure: Structure | None = None
    linked: tuple[Linked, ...] = ()


class GivenError(Record):
    """Why a call gave the program no result; it may catch this."""

    code: str
    type: str = "UNKNOWN"
    message: str


class Given(Record):
    """What a call came to: where its result rests, or its error."""

    result: Coordinate | None = None
    error: GivenError | None = None


class StepTaken(Record):
    """An earlier step: the answer that named its calls, and what each of them came to."""

    answer: Coordinate
    results: tuple[Given, ...]


class StepRequest(Record):
    """Arguments of `pml:step`: the context rests in the command at `start`, the program at `program`."""

    start: Coordinate
    program: Coordinate
    taken: tuple[StepTaken, ...] = ()


class ProgramError(Record):
    """What ended a program; `line` is where in it, from 1."""

    code: str
    message: str
    line: int | None = None


class CapabilityCall(Record):
    """A call of a capability among those of a step, and the tasks that make it.

    Attributes:
        place: of the call among all of the step, from 0.
        name: by which the program calls it.
        tasks: their ids; the first of them that fails is the error of the call.
        value: what the call comes to, over the results of its tasks.
    """

    place: int
    name: str
    arguments: dict[str, Json]
    tasks: tuple[str, ...]
    value: Argument | None = None


class StepAnswer(Record):
    """The calls that a program waits for, or its end: a value or an error.

    `workflow` has the calls as tasks, which are counted over the whole run, and their arguments as literals;
    in the place of a call of a capability the tasks of that, as `capabilities` say. Of a program that is
    `unfolded` by its structure they are what a workflow has, and `value_error` says why it has no value.
    """

    workflow: Workflow | None = None
    capabilities: tuple[CapabilityCall, ...] = ()
    unfolded: bool = False
    value: Json = None
    value_error: str | None = None
    error: ProgramError | None = None
