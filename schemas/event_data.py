"""What the events of several kinds have in common."""

from __future__ import annotations

from typing import ClassVar, Literal

from pml.schemas.base import Json, Record
from pml.schemas.calls import Effect


class EventData(Record):
    """What an event says; a subclass names its type and version."""

    TYPE: ClassVar[str]
    VERSION: ClassVar[int] = 1


class Decided(EventData):
    """What a command or a time-out settled: who, and why.

    `command_hash` is the content of the command, so that the same one is obeyed once.
    """

    decided_by: str = ""
    reason: str = ""
    command_hash: str = ""


class Reopened(Decided):
    """Tasks and decisions that are to be done anew; `after_layer` is the last that stays released."""

    task_ids: tuple[str, ...] = ()
    decision_ids: tuple[str, ...] = ()
    after_layer: int


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
