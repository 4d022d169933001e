"""Events of runs: how they begin, pause, grow, are judged and end."""

from __future__ import annotations

from typing import Any, Literal

from pml.schemas.analysis import Mode
from pml.schemas.base import Coordinate, Json, Record
from pml.schemas.calls import CallError
from pml.schemas.event_data import Decided, EventData, Reopened
from pml.schemas.structure import Language
from pml.schemas.workflow import OnTimeout

PauseReason = Literal["per_layer", "on_error", "manual", "replanned"]
Choice = Literal["continue", "replan", "abort"]


class CommandAttached(EventData):
    """The same command or run was asked for before: this is its run."""

    TYPE = "command.attached"

    status: str


class CommandRejected(EventData):
    """A command that is not obeyed, and why; `invalid` where what it asks for cannot run as it is written."""

    TYPE = "command.rejected"

    command_type: str
    error: dict[str, Any]
    invalid: bool | None = None


class RunCode(Record):
    """The program of a run, sanitised; `redacted` where that took something away."""

    source: str
    language: str | None = None
    redacted: bool = False


class RunStarted(EventData):
    """A run begins. `definition` is the workflow with sanitised literals.

    A run that begins with `code`, with an intent alone, or with a workflow that calls capabilities (which is
    then `written`) has no tasks yet: `run.expanded` brings them.
    `capability_id` says what a workflow is apart from its literals; `defaults` are the names of the context
    that the workflow itself gives and its command left as they are. `request` is what the client told of what
    the user wants beyond this run; with `predicts` it is asked what comes next when the run has ended.
    """

    TYPE = "run.started"

    name: str | None = None
    intent: str | None = None
    request: str | None = None
    workflow_type: str = "default"
    capability_id: str | None = None
    definition: dict[str, Json]
    code: RunCode | None = None
    written: dict[str, Json] | None = None
    context: Json
    defaults: tuple[str, ...] | None = None
    payload_ref: Coordinate
    payload_hash: str
    deadline_at: str
    layers: int
    tasks: int
    speculation: Literal["on", "shadow", "off"] = "on"
    predicts: bool | None = None


class RunCounts(Record):
    """How the tasks of a run ended, and what speculation did for it."""

    tasks: int = 0
    completed: int = 0
    failed: int = 0
    skipped: int = 0
    unknown: int = 0
    hits: int = 0
    misses: int = 0
    wasted: int = 0
    saved_ms: float = 0.0


class RunEnded(EventData):
    """What the three ends of a run have in common. `error` is absent where it completed.

    `workflow_type` is given where a decision was taken: the statistics of branches are kept under it.
    """

    executed_path: tuple[str, ...] = ()
    decisions: dict[str, str] = {}
    workflow_type: str | None = None
    capability_id: str | None = None
    counts: RunCounts = RunCounts()
    duration_ms: int = 0
    error: dict[str, Any] | None = None


class RunCompleted(RunEnded):
    """Every task that had to succeed did.

    `result` is what the workflow or program comes to, sanitised; `result_error` why it has none.
    """

    TYPE = "run.completed"

    result: Json = None
    result_error: str | None = None


class RunFailed(RunEnded):
    """A task failed, its outcome is unknown, or time ran out; results so far stand."""

    TYPE = "run.failed"


class RunAborted(RunEnded):
    """Somebody stopped it, or nobody decided in time."""

    TYPE = "run.aborted"

    aborted_by: str | None = None
    reason: str | None = None


class CheckpointReached(EventData):
    """A layer has ended at a decision point; `next_layer` is absent where nothing is left to run."""

    TYPE = "checkpoint.reached"

    checkpoint_id: str
    because: PauseReason
    layer: int
    next_layer: int | None = None
    task_ids: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class DecisionRequired(EventData):
    """The run waits for a decision until `deadline_at`; then `on_timeout` is done."""

    TYPE = "decision.required"

    checkpoint_id: str
    following: int
    errors: int = 0
    choices: tuple[Choice, ...] = ("continue", "replan", "abort")
    deadline_at: str
    on_timeout: OnTimeout = "abort"


class DecisionMade(Decided):
    """What becomes of a run that waited, or that is to stop; `run_status` is its status from here."""

    TYPE = "decision.made"

    checkpoint_id: str | None = None
    choice: Choice
    timed_out: bool = False
    run_status: Literal["running", "waiting"] = "running"


class RunExpanded(EventData):
    """Tasks came to a run while it goes on: what its program turned out to do.

    `definition`, `kept` and `payload_ref` are as in `run.replanned`; plans of both kinds share their numbers.
    In the `mode` sandbox (absent: dag) the program is no DAG, for the `reasons` that its first expansion has:
    each expansion has only the tasks that are new, as the next layers. So has one that `grows`: of a program
    with loops over results, whose tasks are known when these are.
    """

    TYPE = "run.expanded"

    number: int
    capability_id: str | None = None
    workflow_type: str
    definition: dict[str, Json]
    kept: dict[str, tuple[int, int]]
    payload_ref: Coordinate
    layers: int
    tasks: int
    mode: Mode | None = None
    reasons: tuple[str, ...] | None = None
    language: Language | None = None
    grows: bool | None = None


class RunReplanned(Decided):
    """What had not run was replaced. `definition` is the whole workflow from here, literals sanitised.

    `kept` has of each task and decision that stays its layer and the number of the plan that wrote it
    down: 0 for `run.start`, else the `number` of its replan. Full literals of the new ones rest at
    `payload_ref`.
    """

    TYPE = "run.replanned"

    checkpoint_id: str
    number: int
    definition: dict[str, Json]
    kept: dict[str, tuple[int, int]]
    dropped: tuple[str, ...] = ()
    payload_ref: Coordinate
    layers: int
    tasks: int
    run_status: Literal["running"] = "running"


class RunRetried(Reopened):
    """A failed run goes on from what failed, with new time."""

    TYPE = "run.retried"

    deadline_at: str
    run_status: Literal["running"] = "running"


class RunScored(EventData):
    """Somebody judged a run, while it went on or later. Exactly one of the three values is given.

    `known` says whether the session remembers the run: where it does not, an earlier life of the session had
    it, or nobody did.
    """

    TYPE = "run.scored"

    name: str
    number: float | None = None
    category: str | None = None
    boolean: bool | None = None
    source: str
    comment: str = ""
    known: bool
    command_hash: str


class LayerReleased(EventData):
    """Everything before this layer has ended; these tasks may start."""

    TYPE = "layer.released"

    layer: int
    task_ids: tuple[str, ...]


class BranchTaken(EventData):
    """A decision was evaluated: `true`, `false`, `case:<value>` or, where it could not be, `error`."""

    TYPE = "branch.taken"

    decision_id: str
    outcome: str
    reason: str | None = None


class InternalStarted(EventData):
    """Work that is not pure or not cheap was given to the built-in server `pml`; it is no task."""

    TYPE = "internal.started"

    call_id: str
    tool: str
    arguments: dict[str, Json]
    timeout_ms: int
    deadline_at: str


class InternalEnded(EventData):
    """What came of it. `answer` is what the run goes on with; it is absent where there was none in time."""

    TYPE = "internal.ended"

    call_id: str
    tool: str
    answer: dict[str, Json] | None = None
    error: CallError | None = None
    duration_ms: float = 0.0
