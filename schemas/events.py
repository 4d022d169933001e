"""Every step, as `pml.events` keeps it for ever.

An event is an envelope with `data`. `evolve` and every replay need the event alone, so each carries
what was decided with (DESIGN §2, rule 2). Values are sanitised; full ones rest at their coordinate.
"""

from __future__ import annotations

from pydantic import SerializeAsAny

from pml.schemas.approval_events import (
    ApprovalCall,
    ApprovalExpired,
    ApprovalGranted,
    ApprovalRejected,
    ApprovalRequested,
    ApprovalSettled,
)
from pml.schemas.base import Coordinate, Record
from pml.schemas.event_data import Decided, EventData, Reopened, Started
from pml.schemas.run_events import (
    BranchTaken,
    CheckpointReached,
    Choice,
    CommandAttached,
    CommandRejected,
    DecisionMade,
    DecisionRequired,
    InternalEnded,
    InternalStarted,
    LayerReleased,
    PauseReason,
    RunAborted,
    RunCode,
    RunCompleted,
    RunCounts,
    RunEnded,
    RunExpanded,
    RunFailed,
    RunReplanned,
    RunRetried,
    RunScored,
    RunStarted,
)
from pml.schemas.speculation_events import (
    Fate,
    PredictionCandidate,
    PredictionMade,
    SpeculationDiverged,
    SpeculationEnded,
    SpeculationForgotten,
    SpeculationHeld,
    SpeculationKind,
    SpeculationPlanned,
    SpeculationReady,
    SpeculationScored,
    SpeculationStarted,
    SpeculationUnbalanced,
    SpeculationUnresolvable,
    SpeculationVerified,
    SpeculationVerifying,
    VerifiedOutcome,
)
from pml.schemas.task_events import (
    ServedBy,
    TaskCompleted,
    TaskEnded,
    TaskFailed,
    TaskResolved,
    TaskSkipped,
    TaskStarted,
    TaskUnknown,
    TaskUnverified,
    TaskVerifying,
)

__all__ = [
    "EVENTS",
    "ApprovalCall",
    "ApprovalExpired",
    "ApprovalGranted",
    "ApprovalRejected",
    "ApprovalRequested",
    "ApprovalSettled",
    "BranchTaken",
    "Cause",
    "CheckpointReached",
    "Choice",
    "CommandAttached",
    "CommandRejected",
    "Decided",
    "DecisionMade",
    "DecisionRequired",
    "Event",
    "EventData",
    "Fate",
    "InternalEnded",
    "InternalStarted",
    "LayerReleased",
    "PartitionTaken",
    "PauseReason",
    "PredictionCandidate",
    "PredictionMade",
    "Reopened",
    "RunAborted",
    "RunCode",
    "RunCompleted",
    "RunCounts",
    "RunEnded",
    "RunExpanded",
    "RunFailed",
    "RunReplanned",
    "RunRetried",
    "RunScored",
    "RunStarted",
    "ServedBy",
    "SpeculationDiverged",
    "SpeculationEnded",
    "SpeculationForgotten",
    "SpeculationHeld",
    "SpeculationKind",
    "SpeculationPlanned",
    "SpeculationReady",
    "SpeculationScored",
    "SpeculationStarted",
    "SpeculationUnbalanced",
    "SpeculationUnresolvable",
    "SpeculationVerified",
    "SpeculationVerifying",
    "Started",
    "TaskCompleted",
    "TaskEnded",
    "TaskFailed",
    "TaskResolved",
    "TaskSkipped",
    "TaskStarted",
    "TaskUnknown",
    "TaskUnverified",
    "TaskVerifying",
    "VerifiedOutcome",
]


class PartitionTaken(EventData):
    """An owner took a partition: the offset of this record is its term. Belongs to no session."""

    TYPE = "partition.taken"

    owner: str


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
        PredictionMade,
        SpeculationUnbalanced,
    )
}
