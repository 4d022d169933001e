"""Small changes of a session's state that the folds of events share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from pml.processors.workflow.copying import replacer
from pml.processors.workflow.inputs import Address
from pml.processors.workflow.state import Internal, Run, Session, TaskState
from pml.schemas import events as e
from pml.schemas.analysis import ANALYSE_TOOL
from pml.schemas.base import Coordinate
from pml.schemas.errors import LogCorrupted
from pml.schemas.inlining import INLINE_TOOL
from pml.schemas.matching import MATCH_TOOL
from pml.schemas.stepping import STEP_TOOL

AWAITED = frozenset({ANALYSE_TOOL, INLINE_TOOL, MATCH_TOOL, STEP_TOOL})
"""The internal calls that bring a run its tasks."""

V = TypeVar("V")

_with_runs = replacer(Session, "runs")
_with_tasks = replacer(Run, "tasks")


def run_of(session: Session, event: e.Event) -> Run:
    """The run that an event is about.

    Raises:
        LogCorrupted: the session does not have it.
    """
    run = session.runs.get(event.run_id or "")
    if run is None:
        raise LogCorrupted(
            f"{event.id} ({event.type}) names run {event.run_id}, which the session does not have"
        )
    return run


def with_run(session: Session, run: Run) -> Session:
    """The session with this run as it is now."""
    return _with_runs(session, {**session.runs, run.run_id: run})


def with_task(session: Session, run: Run, task_id: str, task: TaskState) -> Session:
    """The session with this task of a run as it is now."""
    return with_run(session, _with_tasks(run, {**run.tasks, task_id: task}))


def awaited(session: Session, run_id: str) -> tuple[Internal, ...]:
    """The internal calls that a run waits for: before their answers it neither goes on nor ends."""
    return tuple(
        item for item in session.internals.values() if item.run_id == run_id and item.tool in AWAITED
    )


def without(mapping: Mapping[str, V], key: str) -> dict[str, V]:
    """The mapping without one of its keys."""
    rest = {**mapping}
    rest.pop(key, None)
    return rest


def address_of(coordinate: Coordinate) -> Address:
    """The address of a coordinate."""
    return coordinate.topic, coordinate.partition, coordinate.offset


def coordinate_of(address: Address) -> Coordinate:
    """An address as events write it."""
    return Coordinate(topic=address[0], partition=address[1], offset=address[2])
