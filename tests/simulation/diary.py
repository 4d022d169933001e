"""A seed as text: every event that counts, every call that ran, every change of the world, by time."""

from __future__ import annotations

from collections.abc import Iterator

from pml.schemas.events import Event
from pml.streams.connection import partition_for
from tests.simulation.stage import Stage

Line = tuple[float, str]
SHOWN = (
    "task_id", "tool", "call_id", "arguments", "effect", "touches", "attempt", "served_by", "fate", "reason",
    "layer", "task_ids", "outcome", "decision_id", "error", "status", "final", "because",
)  # fmt: skip


def log_of(stage: Stage) -> list[Line]:
    """Lines of virtual seconds and what happened then."""
    return [*_events(stage), *_world(stage)]


def _events(stage: Stage) -> Iterator[Line]:
    for key, life in stage.observer.lives.items():
        for event in life.events:
            at_s = stage.observer.landed_s.get((partition_for(key), event.offset), 0.0)
            yield at_s, f"{key.decode()} #{event.seq} @{event.offset} {_told(event)}"


def _told(event: Event) -> str:
    data = event.data.model_dump(exclude_none=True)
    told = {name: data[name] for name in SHOWN if name in data}
    cause = f"{event.cause.topic}@{event.cause.offset}" if event.cause else ""
    return f"{event.type} {event.run_id} {told} <- {cause}"


def _world(stage: Stage) -> Iterator[Line]:
    for change in stage.world.changes:
        told = f"{change.resource} = {change.value!r} by {change.who} {change.call_id}"
        yield change.at_s, f"world: {told}"
    for executions in stage.world.executions.values():
        for ran in executions:
            yield ran.at_s, f"ran: {ran.tool} for {ran.call_id} early={ran.early} -> {ran.value}"
