"""What somebody wants: the records of `pml.commands`.

A command is an envelope with `data`; its type and version name the model of the data.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, SerializeAsAny

from pml.schemas.base import Json, Model, Name
from pml.schemas.identifiers import DEFAULT_TENANT
from pml.schemas.workflow import Workflow


class CommandData(Model):
    """What a command says; a subclass names its type and version."""

    TYPE: ClassVar[str]
    VERSION: ClassVar[int] = 1


class RunStart(CommandData):
    """Run this workflow, or find one for this intent."""

    TYPE = "run.start"

    workflow: Workflow | None = None
    intent: Annotated[str | None, Field(max_length=10_000)] = None
    context: dict[str, Json] = {}


class DeadlineReach(CommandData):
    """The orchestrator's own clock: this deadline is due."""

    TYPE = "deadline.reach"

    kind: Literal["task", "retry", "run", "speculation"]
    target: str = ""
    attempt: int = 0
    due_at_ms: int


class Command(Model):
    """The envelope of every command."""

    type: str
    version: int = 1
    command_id: Name
    tenant: Name = DEFAULT_TENANT
    principal: Annotated[str, Field(max_length=200)] = "local"
    session_id: Name
    run_id: Name | None = None
    traceparent: Annotated[str | None, Field(max_length=200)] = None
    data: SerializeAsAny[CommandData]


COMMANDS: dict[str, type[CommandData]] = {model.TYPE: model for model in (RunStart, DeadlineReach)}

PLANNED_COMMANDS = frozenset(
    {
        "run.continue",
        "run.replan",
        "run.abort",
        "run.retry",
        "run.score",
        "task.resolve",
        "approval.decide",
    }
)
"""Commands of the contract that this release answers with NOT_SUPPORTED."""
