"""What `pml:match` is asked and answers: the learned capability that an intent means (spec story 10.6)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pml.schemas.base import Record
from pml.schemas.stepping import SandboxProgram
from pml.schemas.structure import StructureParameter
from pml.schemas.workflow import Workflow

MATCH_TOOL = "pml:match"


class MatchRequest(Record):
    """Arguments of `pml:match`. Of the context only its names matter: what is needed and not there."""

    tenant: str
    intent: str
    context: tuple[str, ...] = ()


class Suggestion(Record):
    """A tool or capability that may be meant; `score` is from 0 to 1."""

    type: Literal["tool", "capability"]
    id: str
    name: str
    score: float = Field(ge=0.0, le=1.0)


class MatchAnswer(Record):
    """The capability that is meant, with what makes its calls; without one, `reason` and `suggestions`.

    Attributes:
        program: what runs instead of a workflow where the capability is no DAG.
        confidence: how likely the best capability is the one meant; 0 where there is none.
        threshold: what that had to reach.
        missing: parameters of the best capability that the context does not give.
    """

    confidence: float = Field(default=0.0, ge=0.0, le=1.0)
    threshold: float = Field(ge=0.0, le=1.0)
    capability_id: str | None = None
    name: str | None = None
    workflow: Workflow | None = None
    program: SandboxProgram | None = None
    parameters: tuple[StructureParameter, ...] = ()
    missing: tuple[str, ...] = ()
    reason: str | None = None
    suggestions: tuple[Suggestion, ...] = ()
