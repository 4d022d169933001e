"""What somebody wants: the records of `pml.commands`.

A command is an envelope with `data`; its type and version name the model of the data.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, SerializeAsAny, StrictBool, model_validator

from pml.schemas.base import Json, Model, Name
from pml.schemas.calls import ToolResult
from pml.schemas.identifiers import DEFAULT_TENANT
from pml.schemas.structure import Language
from pml.schemas.workflow import Decision, NodeId, Options, Task, Workflow

DeadlineKind = Literal["task", "retry", "run", "speculation", "decision", "approval", "internal", "verify"]


class CommandData(Model):
    """What a command says; a subclass names its type and version."""

    TYPE: ClassVar[str]
    VERSION: ClassVar[int] = 1


class Code(Model):
    """A program that calls tools; without a language it is told by how it is written."""

    source: Annotated[str, Field(min_length=1, max_length=262_144)]
    language: Language | None = None


class RunStart(CommandData):
    """Run this workflow or this program, or the learned capability that this intent means.

    `options` are those of a program or of what is found; a workflow has its own. `request` is what is
    known of what the user wants beyond this run, in their words: it helps to predict what comes next.
    """

    TYPE = "run.start"

    workflow: Workflow | None = None
    code: Code | None = None
    options: Options | None = None
    intent: Annotated[str | None, Field(max_length=10_000)] = None
    context: dict[str, Json] = {}
    request: Annotated[str | None, Field(max_length=10_000)] = None

    @model_validator(mode="after")
    def _one_of_them(self) -> RunStart:
        if self.workflow is not None and self.code is not None:
            raise ValueError("give either a workflow or code")
        if self.options is not None and self.workflow is not None:
            raise ValueError("options go with code or an intent; a workflow has its own")
        return self


Why = Annotated[str, Field(max_length=2_000)]
"""What somebody says about their decision; it is kept in the log, sanitised."""


class RunContinue(CommandData):
    """Go on with a run that waits at a checkpoint.

    `checkpoint_id` says which one is meant; without it, the one that it waits at.
    """

    TYPE = "run.continue"

    checkpoint_id: Name | None = None
    reason: Why = ""


class RunReplan(CommandData):
    """Other tasks and decisions in place of what has not run, for a run that waits at a checkpoint.

    They may build on tasks that have completed. With `hold` the run waits again before it begins them.
    """

    TYPE = "run.replan"

    tasks: tuple[Task, ...] = ()
    decisions: tuple[Decision, ...] = ()
    checkpoint_id: Name | None = None
    hold: bool = False
    reason: Why = ""


class RunRetry(CommandData):
    """Go on with a failed run from what failed; what completed is not repeated."""

    TYPE = "run.retry"

    reason: Why = ""


class TaskResolve(CommandData):
    """A person knows what became of a task whose outcome is unknown.

    `done` with its result (structured content, as the tool would have given it), `not_done`, or `retry`:
    it may be run again.
    """

    TYPE = "task.resolve"

    task_id: NodeId
    resolution: Literal["done", "not_done", "retry"]
    result: dict[str, Json] | None = None
    reason: Why = ""

    def as_result(self) -> ToolResult:
        """What the tool would have answered."""
        return ToolResult(structured=self.result)


class RunAbort(CommandData):
    """Stop a run: nothing new begins, safe calls are given up, an unsafe one that runs is awaited."""

    TYPE = "run.abort"

    reason: Why = ""


class RunScore(CommandData):
    """How good a run was: a number, a category or true and false, under a name. Late ones count.

    A name that is scored again has the newer value. `source` says what judged: `human`, `agent`,
    `evaluator`, or the name of one; without it, what the principal tells.
    """

    TYPE = "run.score"

    name: Name
    number: Annotated[float | None, Field(strict=True, allow_inf_nan=False)] = None
    category: Annotated[str | None, Field(min_length=1, max_length=200)] = None
    boolean: StrictBool | None = None
    source: Name | None = None
    comment: Why = ""

    @model_validator(mode="after")
    def _one_value(self) -> RunScore:
        if sum(value is not None for value in (self.number, self.category, self.boolean)) != 1:
            raise ValueError("give exactly one of number, category and boolean")
        return self


class ApprovalDecide(CommandData):
    """A person's word about one call, or all of a run: approve or reject. Nobody else's counts.

    Attributes:
        computed: of several calls, also those whose arguments were not known when they were shown.
        via: the door at which the person stands; the doors themselves say it.
    """

    TYPE = "approval.decide"

    approval_id: Name
    decision: Literal["approve", "reject"]
    reason: Why = ""
    computed: bool | None = None
    via: Literal["command_line", "http", "elicitation"] | None = None


class DeadlineReach(CommandData):
    """The orchestrator's own clock: this deadline is due."""

    TYPE = "deadline.reach"

    kind: DeadlineKind
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


COMMANDS: dict[str, type[CommandData]] = {
    model.TYPE: model
    for model in (
        RunStart,
        RunContinue,
        RunReplan,
        RunAbort,
        RunRetry,
        RunScore,
        TaskResolve,
        ApprovalDecide,
        DeadlineReach,
    )
}
