"""Events of calls that begin before they are asked for, and what becomes of them."""

from __future__ import annotations

from typing import Literal

from pml.schemas.base import Coordinate, Json, Record, ThresholdContext
from pml.schemas.event_data import EventData, Started
from pml.schemas.prediction import Feasibility

Fate = Literal["served", "discarded", "failed"]
SpeculationKind = Literal["layer", "branch", "prediction", "exploration"]
VerifiedOutcome = Literal["same", "overtaken", "unanswered"]


class SpeculationStarted(Started):
    """A call begins before it was asked for.

    `sources` are the calls whose waiting results its arguments were taken from: it ends with them.
    `influence` is how much of the confidence comes from what became of its tool before. A predicted call
    belongs to the run after which it was predicted, and its arguments are written down at `plan`;
    `source_tasks` are the tasks there whose results its `sources` are.
    """

    TYPE = "speculation.started"

    kind: SpeculationKind = "layer"
    confidence: float = 1.0
    threshold: float = 0.0
    sources: tuple[str, ...] | None = None
    influence: float | None = None
    plan: Coordinate | None = None
    source_tasks: tuple[str, ...] | None = None


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


class PredictionCandidate(Record):
    """What may come next in the session, and what was done about it.

    `likelihood` is that it comes, `confidence` that it comes with the arguments that were found for it.
    `outcome` is `begun`, `planned`, or why neither; `task_ids` are its calls. `sources` say what each
    argument was taken from, and no value. `feasibility` says whether it could be called at all; None where
    that was not looked at.
    """

    name: str
    likelihood: float
    confidence: float
    outcome: str
    task_ids: tuple[str, ...] = ()
    sources: dict[str, str] = {}
    feasibility: Feasibility | None = None


class PredictionMade(EventData):
    """After a run it was asked what comes next: the best candidates, the most confident first.

    `model` is the artefact that answered, empty where a baseline was counted just then; `history` has the
    elements of the session that it knew, the latest last. `first` is what it ranks first by likelihood alone.
    """

    TYPE = "prediction.made"

    call_id: str
    model: str = ""
    learner: str
    history: tuple[str, ...]
    threshold: float
    first: str | None = None
    candidates: tuple[PredictionCandidate, ...] = ()
