"""Runs of one call, and when an outside consumer sees what of them."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import orjson

from benchmarks.traffic import Traffic
from pml.schemas.events import RunCompleted, RunFailed, TaskCompleted
from pml.schemas.workflow import Workflow
from pml.streams.client import IntentProducer, new_id
from pml.streams.log.reader import counted, event_type
from pml.streams.settings import Settings

ONE_CALL = Workflow.model_validate(
    {"name": "one call", "options": {"speculation": "off"}, "tasks": [{"id": "n1", "tool": "noop:read"}]}
)
ENDS = frozenset({RunCompleted.TYPE, RunFailed.TYPE})


@dataclass(slots=True)
class Trips:
    """What runs of one call took, in milliseconds, and how many events they came to."""

    call_to_completed_ms: list[float] = field(default_factory=list)
    command_to_call_ms: list[float] = field(default_factory=list)
    command_to_completed_ms: list[float] = field(default_factory=list)
    events: int = 0


class RoundTrips(Traffic):
    """Submits runs of one call, reads the calls and the log."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, [settings.topics.tool_calls, settings.topics.events])
        self._called_at: dict[str, float] = {}
        self._trips = Trips()

    async def collect(self, due_s: list[float]) -> Trips:
        """The round trips of runs submitted at these times."""
        self._trips = Trips()
        self._called_at.clear()
        await self.play(due_s)
        return self._trips

    async def _start(self, stack: AsyncExitStack) -> None:
        self._producer = await stack.enter_async_context(IntentProducer(self.settings))

    def _name(self, number: int) -> str:
        return new_id("run")

    async def _send(self, name: str) -> None:
        await self._producer.start_run(ONE_CALL, run_id=name)

    def _see(self, record: Any, now: float) -> None:
        run_id = orjson.loads(record.value).get("run_id")
        if run_id not in self._open:
            return
        if record.topic == self.settings.topics.tool_calls:
            self._see_call(run_id, now)
        elif counted(record):
            self._trips.events += 1
            self._see_event(event_type(record), run_id, now)

    def _see_call(self, run_id: str, now: float) -> None:
        if run_id not in self._called_at:
            self._called_at[run_id] = now
            self._trips.command_to_call_ms.append((now - self._due_at[run_id]) * 1_000)

    def _see_event(self, kind: str, run_id: str, now: float) -> None:
        if kind == TaskCompleted.TYPE:
            self._trips.command_to_completed_ms.append((now - self._due_at[run_id]) * 1_000)
            self._trips.call_to_completed_ms.append((now - self._called_at[run_id]) * 1_000)
        elif kind in ENDS:
            self._answered(run_id)
