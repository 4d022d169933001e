"""What the core is asked with: inputs, payloads and what an answer consists of (DESIGN §2, rule 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pml.schemas.calls import CallCancel, CallEnded, CallRun, ToolResult, task_value
from pml.schemas.codec import decode_command, decode_outcome
from pml.schemas.commands import Command, CommandData, DeadlineKind, TaskResolve
from pml.schemas.events import Event
from pml.schemas.topics import Topics

if TYPE_CHECKING:
    from pml.processors.workflow.state import Session

Address = tuple[str, int, int]
"""Topic, partition and offset of a record that holds a full value."""

Payloads = Mapping[Address, Any]
"""Full values by address: the data of a command, the result of an outcome. What is absent is gone."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A command that could not be decoded, where somebody waits for its answer."""

    code: str
    message: str
    command_id: str | None
    command_type: str


@dataclass(frozen=True, slots=True)
class Input:
    """One record to decide. `time_ms` is the log's time of the record."""

    topic: str
    partition: int
    offset: int
    time_ms: int
    tenant: str
    session_id: str
    message: Command | CallEnded | Unreadable

    @property
    def address(self) -> Address:
        """Where the record rests."""
        return self.topic, self.partition, self.offset


@dataclass(frozen=True, slots=True)
class Step:
    """The answer to one input: events in order, the state they fold to, the calls they begin or end."""

    events: tuple[Event, ...]
    session: Session | None
    calls: tuple[CallRun, ...]
    cancels: tuple[CallCancel, ...]


@dataclass(frozen=True, slots=True)
class GoneCall:
    """A call that must run and whose arguments cannot be had any more (PAYLOAD_GONE)."""

    call_id: str
    tenant: str
    session_id: str


@dataclass(frozen=True, slots=True)
class Deadline:
    """Something that must be decided about when the log's time reaches `due_at_ms`."""

    kind: DeadlineKind
    run_id: str
    target: str
    attempt: int
    due_at_ms: int


def payload_of(topics: Topics, topic: str, value: bytes) -> CommandData | ToolResult | None:
    """The full value that a record of an input topic holds; None for a topic or record without one.

    Raises:
        UndecodableRecord, UnknownMessage: the record is not what it was when it was decided.
    """
    if topic == topics.commands:
        return decode_command(value).data
    if topic == topics.tool_outcomes:
        return decode_outcome(value).result
    return None


def payload_value(payload: Any) -> Any:
    """What a task's result is to the tasks after it."""
    if isinstance(payload, TaskResolve):
        return task_value(payload.as_result())
    return task_value(payload) if isinstance(payload, ToolResult) else payload
