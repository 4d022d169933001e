"""What a run came to, folded from its events."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from pml.schemas.base import Coordinate
from pml.schemas.events import (
    ApprovalRequested,
    ApprovalSettled,
    DecisionMade,
    DecisionRequired,
    Event,
    RunCompleted,
    RunCounts,
    RunEnded,
    RunExpanded,
    RunReplanned,
    RunRetried,
    RunScored,
    RunStarted,
    TaskCompleted,
    TaskFailed,
    TaskResolved,
    TaskSkipped,
    TaskStarted,
    TaskUnknown,
)
from pml.schemas.times import from_rfc3339

T = TypeVar("T")

RUN_ENDS = {"run.completed": "completed", "run.failed": "failed", "run.aborted": "aborted"}


@dataclass(frozen=True, slots=True)
class TaskSummary:
    """The last attempt of a task; `result_ref` leads to its full value while that is kept."""

    status: str = "pending"
    served_by: str | None = None
    preview: str | None = None
    error: dict[str, Any] | None = None
    result_ref: Coordinate | None = None
    duration_ms: float = 0.0
    saved_ms: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """The task as JSON-serialisable values."""
        return {**_fields(self), "result_ref": self.result_ref.model_dump() if self.result_ref else None}


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run so far, or as it ended; `error` says why it failed or was aborted.

    `waits_for` has what somebody is asked, by the id of the checkpoint or approval. `mode` is how a run goes
    that began without tasks: `dag` or `sandbox`, which has its `reasons`. `scores` has the
    newest of each name. `calling_ms` is from its first call to its end.
    """

    run_id: str
    session_id: str
    tenant: str
    status: str = "queued"
    name: str | None = None
    layers: int = 0
    results: dict[str, TaskSummary] = field(default_factory=dict)
    counts: RunCounts = field(default_factory=RunCounts)
    executed_path: tuple[str, ...] = ()
    duration_ms: int = 0
    error: dict[str, Any] | None = None
    result: Any = None
    result_error: str | None = None
    waits_for: dict[str, dict[str, Any]] = field(default_factory=dict)
    mode: str | None = None
    reasons: tuple[str, ...] = ()
    scores: dict[str, dict[str, Any]] = field(default_factory=dict)
    first_call_ms: int | None = None
    calling_ms: int = 0

    @property
    def waiting(self) -> bool:
        """Whether somebody has to decide before it goes on."""
        return self.status == "waiting"

    @property
    def ended(self) -> bool:
        """Whether nothing more can happen to this run."""
        return self.status in RUN_ENDS.values()

    def as_dict(self) -> dict[str, Any]:
        """The summary as JSON-serialisable values."""
        return {
            **_fields(self),
            "results": {task: summary.as_dict() for task, summary in self.results.items()},
            "counts": self.counts.model_dump(),
            "executed_path": list(self.executed_path),
            "reasons": list(self.reasons),
        }


def observe(summary: RunSummary, event: Event) -> RunSummary:
    """The summary after one more event; an event of another run changes nothing."""
    if event.run_id != summary.run_id:
        return summary
    data = event.data
    if isinstance(data, RunStarted):
        return replace(summary, status="running", name=data.name, layers=data.layers)
    if isinstance(data, RunEnded):
        began_ms = summary.first_call_ms
        calling_ms = 0 if began_ms is None else from_rfc3339(event.occurred_at) - began_ms
        return replace(_ended(summary, RUN_ENDS[event.type], data), calling_ms=calling_ms)
    if isinstance(data, DecisionRequired):
        return _asks(summary, data.checkpoint_id, data.model_dump(exclude_none=True))
    if isinstance(data, ApprovalRequested):
        return _asks(summary, data.approval_id, data.model_dump(exclude_none=True))
    if isinstance(data, DecisionMade):
        return _answered(summary, data.checkpoint_id, data.run_status)
    if isinstance(data, ApprovalSettled):
        return _answered(summary, data.approval_id, data.run_status)
    if isinstance(data, RunExpanded):
        return replace(
            summary, layers=data.layers, mode=data.mode or "dag", reasons=data.reasons or summary.reasons
        )
    if isinstance(data, RunScored):
        return replace(summary, scores={**summary.scores, data.name: _score(event, data)})
    if isinstance(data, RunReplanned):
        return replace(summary, layers=data.layers)
    if isinstance(data, TaskStarted) and summary.first_call_ms is None:
        summary = replace(summary, first_call_ms=from_rfc3339(event.occurred_at))
    if isinstance(data, RunRetried):
        return replace(_opened(summary, data.task_ids), status="running", error=None)
    if isinstance(data, TaskResolved):
        summary = _opened(summary, data.task_ids)
    task = _task(data)
    if task is None:
        return summary
    task_id, task_summary = task
    return replace(summary, results={**summary.results, task_id: task_summary})


def _score(event: Event, data: RunScored) -> dict[str, Any]:
    value = next(item for item in (data.number, data.category, data.boolean) if item is not None)
    said = {"value": value, "source": data.source, "comment": data.comment}
    return {**said, "principal": event.principal, "scored_at": event.occurred_at}


def _asks(summary: RunSummary, question: str, asked: dict[str, Any]) -> RunSummary:
    return replace(summary, status="waiting", waits_for={**summary.waits_for, question: asked})


def _answered(summary: RunSummary, question: str | None, status: str) -> RunSummary:
    left = {name: asked for name, asked in summary.waits_for.items() if name != question}
    return replace(summary, status=status, waits_for=left)


def _opened(summary: RunSummary, task_ids: tuple[str, ...]) -> RunSummary:
    """These tasks have no outcome any more."""
    left = {name: task for name, task in summary.results.items() if name not in task_ids}
    return replace(summary, results=left)


def _ended(summary: RunSummary, status: str, data: RunEnded) -> RunSummary:
    return replace(
        summary,
        status=status,
        counts=data.counts,
        executed_path=data.executed_path,
        duration_ms=data.duration_ms,
        error=data.error,
        result=data.result if isinstance(data, RunCompleted) else None,
        result_error=data.result_error if isinstance(data, RunCompleted) else None,
        waits_for={},
    )


def _task(data: object) -> tuple[str, TaskSummary] | None:
    match data:
        case TaskStarted():
            return data.task_id, TaskSummary("running", served_by=data.served_by)
        case TaskCompleted():
            return data.task_id, _completed(data)
        case TaskFailed():
            status = "failed" if data.final else "running"
            return data.task_id, TaskSummary(status, data.served_by, error=data.error.model_dump())
        case TaskUnknown():
            return data.task_id, TaskSummary("unknown", data.served_by, error=data.error.model_dump())
        case TaskResolved():
            return (data.task_id, _resolved(data)) if data.resolution != "retry" else None
        case TaskSkipped():
            return data.task_id, TaskSummary("skipped", error=_skip_reason(data))
    return None


def _completed(data: TaskCompleted) -> TaskSummary:
    return TaskSummary(
        "completed",
        served_by=data.served_by,
        preview=data.preview,
        result_ref=data.result_ref,
        duration_ms=data.duration_ms,
        saved_ms=data.saved_ms,
    )


def _resolved(data: TaskResolved) -> TaskSummary:
    if data.resolution == "done":
        return TaskSummary("completed", "call", preview=data.preview, result_ref=data.result_ref)
    error = data.error.model_dump() if data.error else {"code": "NOT_DONE", "message": data.reason}
    return TaskSummary("failed", "call", error=error)


def _skip_reason(data: TaskSkipped) -> dict[str, Any]:
    return {"code": data.reason.upper(), "message": data.because, "retryable": False}


def _fields(summary: TaskSummary | RunSummary) -> dict[str, Any]:
    return {name: getattr(summary, name) for name in summary.__slots__}
