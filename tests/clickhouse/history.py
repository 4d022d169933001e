"""Events as the orchestrator writes them, for the tests of the store."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from pml.clickhouse.client import Store
from pml.clickhouse.rows import EVENT_COLUMNS, EVENTS_TABLE, event_row, threshold_row
from pml.schemas.argument_pattern import ArgumentPattern
from pml.schemas.base import Coordinate
from pml.schemas.calls import CallError
from pml.schemas.codec import encode
from pml.schemas.events import (
    Cause,
    Event,
    EventData,
    PartitionTaken,
    RunCompleted,
    RunCounts,
    RunFailed,
    RunScored,
    RunStarted,
    SpeculationEnded,
    TaskCompleted,
    TaskFailed,
    TaskResolved,
    TaskSkipped,
    TaskUnknown,
)

START = datetime.now(UTC).replace(minute=30, second=0, microsecond=123456) - timedelta(hours=2)
REF = Coordinate(topic="pml.tool-outcomes", partition=0, offset=7)


def time_of(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


@dataclass
class History:
    """One session's events, one second apart."""

    session_id: str = "ses_1"
    partition: int = 3
    offset: int = 100
    epoch: int = 100
    tenant: str = "local"
    events: list[dict[str, Any]] = field(default_factory=list)

    def add(self, data: EventData, run_id: str = "run_1") -> None:
        seq = len(self.events)
        event = Event(
            id=f"{self.tenant}/{self.session_id}:{self.epoch}:{seq}",
            type=data.TYPE,
            tenant=self.tenant,
            principal="ada",
            session_id=self.session_id,
            epoch=self.epoch,
            run_id=run_id,
            seq=seq,
            offset=self.offset,
            occurred_at=time_of(START + timedelta(seconds=seq)),
            cause=Cause(topic="pml.commands", partition=self.partition, offset=41),
            command_id="cmd_1",
            data=data,
        )
        self.events.append(orjson.loads(encode(event)))
        self.offset += 1

    def rows(self) -> list[tuple[Any, ...]]:
        return [event_row(self.partition, event) for event in self.events]

    def insert(self, store: Store, token: str | None = None) -> None:
        store.insert(EVENTS_TABLE, EVENT_COLUMNS, self.rows(), token=token)


def run_started(**fields: Any) -> RunStarted:
    given = {"name": "notes", "intent": "Write notes", "workflow_type": "release", "context": {"repo": "."}}
    fixed = {"definition": {}, "payload_ref": REF, "payload_hash": "h", "deadline_at": time_of(START)}
    return RunStarted(**fixed, **(given | {"layers": 2, "tasks": 2} | fields))


def run_completed(**counts: Any) -> RunCompleted:
    return RunCompleted(
        executed_path=("n1", "n2"), decisions={"d1": "true"}, counts=RunCounts(**counts), duration_ms=900
    )


def run_failed() -> RunFailed:
    return RunFailed(
        executed_path=("n1",), duration_ms=700, error={"code": "TASK_FAILED", "message": "n1 failed"}
    )


def run_scored(name: str, *, known: bool = True, **fields: Any) -> RunScored:
    return RunScored(name=name, known=known, command_hash="ch", **{"source": "human", **fields})


def _ended(task_id: str, fields: dict[str, Any]) -> dict[str, Any]:
    given = {"attempt": 1, "layer": 0, "tool": "git:git_log", "call_id": f"call_{task_id}"}
    given |= {"arguments": {"max_count": 20}, "arguments_hash": "ah", "started_at": time_of(START)}
    given |= {"argument_pattern": ArgumentPattern(argument_count=1, types={"max_count": "integer"})}
    return {"task_id": task_id, **given, "duration_ms": 120.5, **fields}


def completed(task_id: str, **fields: Any) -> TaskCompleted:
    given = {"result": {"content": [task_id]}, "result_ref": REF, "result_hash": "rh", "result_bytes": 9}
    timed = {"tool_ms": 100.0, "as_of": time_of(START)}
    return TaskCompleted(**(given | timed | _ended(task_id, fields)))


def failed(task_id: str, **fields: Any) -> TaskFailed:
    error = CallError(code="TOOL_ERROR", type="NOT_FOUND", message="no such file")
    return TaskFailed(error=error, **_ended(task_id, fields))


def unknown(task_id: str, **fields: Any) -> TaskUnknown:
    error = CallError(code="OUTCOME_UNKNOWN", type="TIMEOUT", message="nobody knows")
    return TaskUnknown(error=error, **_ended(task_id, fields))


def resolved(task_id: str, **fields: Any) -> TaskResolved:
    """What became of `unknown(task_id)`: its call was done, as its late answer says."""
    given = {"attempt": 1, "layer": 0, "tool": "git:git_log", "call_id": f"call_{task_id}", "late": True}
    found = {"resolution": "done", "result": {"content": [task_id]}, "result_hash": "rh", "result_bytes": 9}
    return TaskResolved.model_validate({"task_id": task_id, "after_layer": 0, **given, **found, **fields})


def skipped(task_id: str) -> TaskSkipped:
    return TaskSkipped(task_id=task_id, layer=1, tool="files:write_file", reason="dependency_failed")


def speculation(task_id: str, fate: str, reason: str, **fields: Any) -> SpeculationEnded:
    given = {"call_id": f"call_{task_id}", "started_seq": 1, "tool": "git:git_log", "kind": "layer"}
    given |= {"task_id": task_id, "confidence": 1.0, "tool_ms": 100.0, "fate": fate, "reason": reason}
    return SpeculationEnded.model_validate(given | fields)


def partition_taken() -> PartitionTaken:
    return PartitionTaken(owner="worker-1")


def thresholds() -> list[tuple[Any, ...]]:
    """Five windows of one context, the third out of the range again, and what somebody set then."""
    key, scope = "local/default", {"tenant": "local", "level": "default"}
    averages = [0.88, 0.91, 0.92, 0.89, 0.86]
    learned = [
        {
            **scope,
            "value": 0.92 - number / 100,
            "previous": 0.93 - number / 100,
            "ema": average,
            "success_rate": average,
            "windows": number,
            "outcomes": 50 * number,
            "state": "converged" if average <= 0.9 else "drifting",
            "reason": "tuned",
            "changed_at": time_of(START + timedelta(minutes=number)),
        }
        for number, average in enumerate(averages, 1)
    ]
    manual = {**scope, "value": 0.8, "principal": "ada", "changed_at": time_of(START + timedelta(hours=1))}
    rows = [threshold_row(7 * number, key, data, manual=False) for number, data in enumerate(learned, 1)]
    return [*rows, threshold_row(99, key, manual, manual=True)]
