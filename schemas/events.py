"""Every step, as `pml.events` keeps it for ever.

An event is an envelope with `data`. `evolve` and every replay need the event alone, so each carries
what was decided with (DESIGN §2, rule 2). Values are sanitised; full ones rest at their coordinate.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import SerializeAsAny

from pml.schemas.analysis import Mode
from pml.schemas.base import Coordinate, Json, Record, ThresholdContext
from pml.schemas.calls import CallError, Effect
from pml.schemas.permissions import RetryRule
from pml.schemas.structure import Language
from pml.schemas.workflow import OnTimeout

Fate = Literal["served", "discarded", "failed"]
ServedBy = Literal["call", "speculation", "joined", "repeat"]
PauseReason = Literal["per_layer", "on_error", "manual", "replanned"]
Choice = Literal["continue", "replan", "abort"]
SpeculationKind = Literal["layer", "branch", "prediction", "exploration"]


class EventData(Record):
    """What an event says; a subclass names its type and version."""

    TYPE: ClassVar[str]
    VERSION: ClassVar[int] = 1


class PartitionTaken(EventData):
    """An owner took a partition: the offset of this record is its term. Belongs to no session."""

    TYPE = "partition.taken"

    owner: str


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
    that the workflow itself gives and its command left as they are.
    """

    TYPE = "run.started"

    name: str | None = None
    intent: str | None = None
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


class Decided(EventData):
    """What a command or a time-out settled: who, and why.

    `command_hash` is the content of the command, so that the same one is obeyed once.
    """

    decided_by: str = ""
    reason: str = ""
    command_hash: str = ""


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


class Reopened(Decided):
    """Tasks and decisions that are to be done anew; `after_layer` is the last that stays released."""

    task_ids: tuple[str, ...] = ()
    decision_ids: tuple[str, ...] = ()
    after_layer: int


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


class ApprovalCall(Record):
    """One of the calls that a person is asked about before any of them begins.

    Where its arguments are not all known yet, `arguments_hash` is absent, `arguments` has those that are, and
    `computed` says what the others will be taken from. Of a program in the sandbox only its tools are known:
    then `task_id` is empty. A `conditional` call may never come.
    """

    task_id: str = ""
    layer: int = 0
    tool: str
    description: str = ""
    arguments: Json = None
    computed: dict[str, str] | None = None
    arguments_hash: str | None = None
    effect: Effect
    touches: tuple[str, ...] = ()
    definition: str = ""
    code: str
    message: str
    conditional: bool | None = None


class ApprovalRequested(EventData):
    """A call waits for a person until `expires_at`: what it would do, and with which arguments.

    An approval is for exactly these arguments and this definition of the tool. `code` says why it is
    needed: APPROVAL_REQUIRED (its entry wants it for each call) or TOOL_NOT_APPROVED (it has no entry).

    With `calls` it is about all of these, and nothing of the run begins before it is answered; the fields
    beside them are those of the only call where there is one. `omitted` calls had no room: they are asked
    about in their turn.
    """

    TYPE = "approval.requested"

    approval_id: str
    task_id: str
    layer: int
    tool: str
    description: str = ""
    arguments: Json = None
    arguments_hash: str
    effect: Effect
    touches: tuple[str, ...] = ()
    definition: str = ""
    code: str
    message: str
    expires_at: str
    calls: tuple[ApprovalCall, ...] | None = None
    omitted: int | None = None


class ApprovalSettled(Decided):
    """What the ends of a request have in common; `run_status` is the run's status from here.

    `via` is the door at which the person stood, where it is known.
    """

    approval_id: str
    task_id: str
    tool: str
    run_status: Literal["running", "waiting"] = "running"
    via: str | None = None


class ApprovalGranted(ApprovalSettled):
    """A person approved the call; it begins unless it has changed meanwhile.

    With `computed` it is for the calls that were shown, also where their arguments were not known yet.
    """

    TYPE = "approval.granted"

    computed: bool | None = None


class ApprovalRejected(ApprovalSettled):
    """A person rejected the call; its task fails with APPROVAL_REJECTED."""

    TYPE = "approval.rejected"


class ApprovalExpired(ApprovalSettled):
    """Nobody decided in time (`timeout`), or the run ended, or got other tasks, before."""

    TYPE = "approval.expired"

    because: Literal["timeout", "run_ended", "replanned"] = "timeout"


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


class Started(EventData):
    """What a started call has in common, real or speculative; all that `evolve` and `calls` need.

    `mapped` has the arguments that their edge's mapping gave a field of a result, and the field.
    """

    task_id: str
    layer: int
    tool: str
    call_id: str
    arguments: Json
    arguments_hash: str
    omitted: tuple[str, ...] = ()
    mapped: dict[str, str] | None = None
    effect: Effect
    touches: tuple[str, ...]
    cacheable: bool
    ttl_s: float
    timeout_ms: int
    deadline_at: str
    permission: str
    definition: str = ""
    isolation: Literal["shared", "tenant", "session"] = "shared"


class TaskStarted(Started):
    """A task begins. `serves` is the seq of the speculation that serves it or that it joins.

    `eligible`: its call could run early, as far as the operator and its place say: it is allowed to, with
    these arguments, speculation of it is on, and it is not in the first layer.
    """

    TYPE = "task.started"

    attempt: int
    retry: RetryRule | None = None
    serves: int | None = None
    served_by: ServedBy = "call"
    speculable: bool = False
    approval_id: str | None = None
    eligible: bool | None = None


class SpeculationStarted(Started):
    """A call begins before it was asked for.

    `sources` are the calls whose waiting results its arguments were taken from: it ends with them.
    `influence` is how much of the confidence comes from what became of its tool before.
    """

    TYPE = "speculation.started"

    kind: SpeculationKind = "layer"
    confidence: float = 1.0
    threshold: float = 0.0
    sources: tuple[str, ...] | None = None
    influence: float | None = None


class TaskEnded(EventData):
    """What the ends of an attempt have in common: one row in ClickHouse each.

    `early` is given where its call was eligible: whether it was speculated or not.
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


class SpeculationHeld(EventData):
    """Tasks that could have been run early and were not, for want of budget: their calls count as misses.

    `confidences`, one a task, are given where not all are 1. With `shadow` it is the modelled budget of
    shadow mode that held back one task of this `tool`, and nothing is counted as a miss.
    """

    TYPE = "speculation.held"

    layer: int
    task_ids: tuple[str, ...]
    reason: Literal["budget"] = "budget"
    confidences: tuple[float, ...] | None = None
    shadow: bool | None = None
    tool: str | None = None


class SpeculationUnresolvable(EventData):
    """A task that could have been run early, had all its arguments led to a value: it waits for its turn."""

    TYPE = "speculation.unresolvable"

    task_id: str
    layer: int
    tool: str
    reason: str


class SpeculationReady(EventData):
    """A speculated result waits in the cache until `expires_at`."""

    TYPE = "speculation.ready"

    call_id: str
    result_ref: Coordinate
    result_hash: str
    result_bytes: int
    tool_ms: float
    as_of: str
    expires_at: str


class SpeculationForgotten(EventData):
    """Results that were used already leave the cache, so that new ones fit."""

    TYPE = "speculation.forgotten"

    call_ids: tuple[str, ...]


VerifiedOutcome = Literal["same", "overtaken", "unanswered"]


class SpeculationVerifying(Started):
    """A tool is called again after its early result was served: does it still say the same?

    `started_seq` is the speculation that was served; `reads` says where the results lie that it reads.
    """

    TYPE = "speculation.verifying"

    started_seq: int
    kind: SpeculationKind
    confidence: float
    result_hash: str
    reads: dict[str, Coordinate] = {}


class SpeculationVerified(EventData):
    """The tool said the same; or a write came between; or it gave no answer."""

    TYPE = "speculation.verified"

    call_id: str
    started_seq: int
    task_id: str
    tool: str
    outcome: VerifiedOutcome


class SpeculationDiverged(EventData):
    """The tool says something else than what was served: a failure, where confidence was below 1."""

    TYPE = "speculation.diverged"

    call_id: str
    started_seq: int
    task_id: str
    tool: str
    kind: SpeculationKind
    confidence: float
    served_hash: str
    result_hash: str
    context: ThresholdContext | None = None


class SpeculationPlanned(EventData):
    """A call that would have begun now: in shadow mode, or with up to 0.05 more confidence."""

    TYPE = "speculation.planned"

    task_id: str
    layer: int
    tool: str
    kind: SpeculationKind
    confidence: float
    threshold: float
    arguments_hash: str
    touches: tuple[str, ...]
    expires_at: str
    shadow: bool
    influence: float | None = None


class SpeculationScored(EventData):
    """A planned call held against what came: whether it would have been served, and how much sooner.

    `context` is given where the confidence was below 1 and thresholds learn from it. In shadow mode `tool_ms`
    is what the task's own call took, and `wasted_ms` the tool time that a plan in vain would have cost.
    """

    TYPE = "speculation.scored"

    task_id: str
    layer: int
    tool: str
    kind: SpeculationKind
    confidence: float
    threshold: float
    context: ThresholdContext | None = None
    success: bool
    reason: str
    shadow: bool | None = None
    saved_ms: float | None = None
    tool_ms: float | None = None
    wasted_ms: float | None = None


class SpeculationEnded(EventData):
    """What became of a speculation. `cancelled` says that its call was still running.

    `context` is given where the confidence was below 1: such an end is an outcome that thresholds learn from.
    """

    TYPE = "speculation.ended"

    call_id: str
    started_seq: int
    task_id: str
    tool: str
    kind: SpeculationKind
    arguments: Json = None
    arguments_hash: str = ""
    confidence: float
    fate: Fate
    reason: str
    tool_ms: float = 0.0
    saved_ms: float = 0.0
    cancelled: bool = False
    context: ThresholdContext | None = None


class SpeculationUnbalanced(EventData):
    """The accounts of speculation do not add up after this input: a defect of PML.

    `started` should be the sum of the others.
    """

    TYPE = "speculation.unbalanced"

    started: int
    open: int
    served: int
    discarded: int
    failed: int


class Cause(Coordinate):
    """The input that an event follows from."""


class Event(Record):
    """The envelope of every event. It counts only where it lies at its own `offset`."""

    id: str
    type: str
    version: int = 1
    tenant: str
    principal: str = ""
    session_id: str
    epoch: int
    run_id: str | None = None
    seq: int
    offset: int
    occurred_at: str
    cause: Cause | None = None
    command_id: str | None = None
    traceparent: str | None = None
    data: SerializeAsAny[EventData]


EVENTS: dict[str, type[EventData]] = {
    model.TYPE: model
    for model in (
        PartitionTaken,
        CommandAttached,
        CommandRejected,
        RunStarted,
        RunCompleted,
        RunFailed,
        RunAborted,
        CheckpointReached,
        DecisionRequired,
        DecisionMade,
        RunExpanded,
        RunReplanned,
        RunRetried,
        RunScored,
        TaskResolved,
        ApprovalRequested,
        ApprovalGranted,
        ApprovalRejected,
        ApprovalExpired,
        LayerReleased,
        BranchTaken,
        TaskStarted,
        TaskCompleted,
        TaskFailed,
        TaskSkipped,
        TaskUnknown,
        TaskVerifying,
        TaskUnverified,
        InternalStarted,
        InternalEnded,
        SpeculationStarted,
        SpeculationHeld,
        SpeculationUnresolvable,
        SpeculationReady,
        SpeculationForgotten,
        SpeculationVerifying,
        SpeculationVerified,
        SpeculationDiverged,
        SpeculationPlanned,
        SpeculationScored,
        SpeculationEnded,
        SpeculationUnbalanced,
    )
}
