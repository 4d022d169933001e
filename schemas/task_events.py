"""Events of tasks: each attempt begins once and ends at most once."""

from __future__ import annotations

from typing import Literal

from pml.schemas.argument_pattern import ArgumentPattern
from pml.schemas.base import Coordinate, Json
from pml.schemas.calls import CallError
from pml.schemas.event_data import EventData, Reopened, Started
from pml.schemas.permissions import RetryRule

ServedBy = Literal["call", "speculation", "joined", "repeat"]


class TaskResolved(Reopened):
    """What became of a task whose outcome was unknown: a person says so, or the tool answered after all.

    `done`, `not_done`, or `retry`; a result that was given rests at `result_ref`. `late` where the tool's
    side says so: the call's own answer, or that of the call `verified_by`, which its entry declares.
    """

    TYPE = "task.resolved"

    task_id: str
    attempt: int
    layer: int
    tool: str
    call_id: str
    resolution: Literal["done", "not_done", "retry"]
    late: bool = False
    result: Json = None
    preview: str = ""
    result_ref: Coordinate | None = None
    result_hash: str = ""
    result_bytes: int = 0
    error: CallError | None = None
    verified_by: str | None = None


class TaskStarted(Started):
    """A task begins. `serves` is the seq of the speculation that serves it or that it joins.

    `eligible`: its call could run early, as far as the operator and its place say: it is allowed to, with
    these arguments, speculation of it is on, and it is not in the first layer. `argument_pattern` is what its
    full arguments look like.
    """

    TYPE = "task.started"

    attempt: int
    retry: RetryRule | None = None
    serves: int | None = None
    served_by: ServedBy = "call"
    speculable: bool = False
    approval_id: str | None = None
    eligible: bool | None = None
    argument_pattern: ArgumentPattern | None = None


class TaskEnded(EventData):
    """What the ends of an attempt have in common: one row in ClickHouse each.

    `early` is given where its call was eligible: whether it was speculated or not. `argument_pattern` is that
    of its start, absent where its arguments are gone.
    """

    task_id: str
    attempt: int
    layer: int
    tool: str
    call_id: str | None = None
    arguments: Json = None
    arguments_hash: str = ""
    served_by: ServedBy = "call"
    speculable: bool = False
    started_at: str | None = None
    duration_ms: float = 0.0
    early: Literal["speculated", "missed"] | None = None
    argument_pattern: ArgumentPattern | None = None


class TaskCompleted(TaskEnded):
    """A task has its result. `duration_ms` is what the run waited; `tool_ms` what the tool took.

    `cached`: it was speculated with other arguments, and this result takes that one's place in the cache.
    """

    TYPE = "task.completed"

    result: Json = None
    preview: str = ""
    result_ref: Coordinate
    result_hash: str
    result_bytes: int
    tool_ms: float = 0.0
    saved_ms: float = 0.0
    as_of: str
    final: bool = True
    cached: bool | None = None


class TaskFailed(TaskEnded):
    """An attempt failed. Where `final` is false another one follows at `retry_at`."""

    TYPE = "task.failed"

    error: CallError
    retry_at: str | None = None
    final: bool = True


class TaskSkipped(EventData):
    """A task that does not run: `condition`, `dependency_failed` or `run_ended`."""

    TYPE = "task.skipped"

    task_id: str
    layer: int
    tool: str
    reason: Literal["condition", "dependency_failed", "run_ended"]
    because: str = ""


class TaskUnknown(TaskEnded):
    """Nobody knows whether an unsafe call happened; it is never repeated.

    From `verify_at` on the tool that its entry declares is asked.
    """

    TYPE = "task.unknown"

    error: CallError
    verify_at: str | None = None


class TaskVerifying(Started):
    """A tool that reads is asked whether the unsafe call `unknown_call_id` of a task happened.

    `template` are its arguments as the permissions file writes them, `done` what must hold of its answer.
    """

    TYPE = "task.verifying"

    attempt: int
    unknown_call_id: str
    template: dict[str, Json]
    done: str


class TaskUnverified(EventData):
    """The tool could not be asked, or its answer says nothing for certain: the task stays unknown.

    `call_id` is the call that asked, where there was one.
    """

    TYPE = "task.unverified"

    task_id: str
    attempt: int
    layer: int
    tool: str
    unknown_call_id: str
    call_id: str | None = None
    error: CallError
