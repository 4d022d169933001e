"""What `pml:step` is asked and answers: a program that is no DAG, from one wait to the next (ADR 14)."""

from __future__ import annotations

from pml.schemas.base import Coordinate, Json, Record
from pml.schemas.structure import Language
from pml.schemas.workflow import Workflow

STEP_TOOL = "pml:step"


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
    """Arguments of `pml:step`: the program and its context rest in the command at `start`."""

    language: Language
    start: Coordinate
    taken: tuple[StepTaken, ...] = ()


class ProgramError(Record):
    """What ended a program; `line` is where in it, from 1."""

    code: str
    message: str
    line: int | None = None


class StepAnswer(Record):
    """The calls that a program waits for, or its end: a value or an error.

    `workflow` has the calls as tasks, which are counted over the whole run, and their arguments as literals.
    """

    workflow: Workflow | None = None
    value: Json = None
    error: ProgramError | None = None
