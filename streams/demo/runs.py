"""One run of a workflow, the way any user runs one, and what it came to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pml.schemas.base import Json
from pml.schemas.calls import task_value
from pml.schemas.commands import Code
from pml.schemas.events import Event, RunEnded, SpeculationEnded, TaskEnded
from pml.schemas.workflow import Options, Workflow
from pml.streams.client import IntentProducer, ResultReader, RunSummary, wait_for_run
from pml.streams.demo.comparison import Outcome, TaskResult
from pml.streams.demo.stage import Stage

# The longest example takes about a second; a machine may be busy.
RUN_TIMEOUT_S = 120
# A result that came a few milliseconds early is a hit, but nobody would notice.
SMALL_SAVING_MS = 5.0

Mode = Literal["on", "off"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be run: a workflow, a program, or with neither what the intent means."""

    what: Workflow | Code | None
    speculation: Mode
    intent: str | None = None
    context: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Measured:
    """A run: how long somebody waited for it, what speculation did, and its outcome."""

    wall_ms: float
    summary: RunSummary
    outcome: Outcome
    savings_ms: tuple[float, ...]
    speculated: bool
    unsafe_speculations: int
    eligible: int
    eligible_speculated: int
    capability_id: str | None

    @property
    def small_hits(self) -> int:
        """Hits that saved too little to notice."""
        return sum(saved < SMALL_SAVING_MS for saved in self.savings_ms)


class Runner:
    """Runs workflows on a stage, one after another."""

    def __init__(self, stage: Stage, producer: IntentProducer, results: ResultReader) -> None:
        self._stage = stage
        self._producer = producer
        self._results = results

    async def measure(self, asked: Asked) -> Measured:
        """Rebuild the world, run what is asked for, and keep everything that came of it."""
        await asyncio.to_thread(self._stage.rebuild)
        position = self._stage.call_log.stat().st_size
        events: list[Event] = []
        began = time.perf_counter()
        summary = await self.run(asked, events)
        wall_ms = (time.perf_counter() - began) * 1_000
        ended = [event.data for event in events if isinstance(event.data, SpeculationEnded)]
        early = [event.data.early for event in events if isinstance(event.data, TaskEnded) and _final(event)]
        return Measured(
            wall_ms=wall_ms,
            summary=summary,
            outcome=await self._outcome(summary, events),
            savings_ms=tuple(data.saved_ms for data in ended if data.fate == "served"),
            speculated=any(event.type == "speculation.started" for event in events),
            unsafe_speculations=await asyncio.to_thread(self._stage.unsafe_speculations, position),
            eligible=sum(told is not None for told in early),
            eligible_speculated=early.count("speculated"),
            capability_id=_ended(events).capability_id,
        )

    async def run(self, asked: Asked, events: list[Event]) -> RunSummary:
        """Submit it, a workflow on the stage's repository, and wait for its end."""
        submission = await self._producer.start_run(**self._given(asked), principal="demo")
        return await wait_for_run(
            self._stage.settings, submission, timeout_s=RUN_TIMEOUT_S, on_event=events.append
        )

    def _given(self, asked: Asked) -> dict[str, Any]:
        if not isinstance(asked.what, Workflow):
            options = Options(speculation=asked.speculation)
            given = {"options": options, "intent": asked.intent, "context": asked.context}
            return {"workflow": asked.what, **given}
        options = asked.what.options.model_copy(update={"speculation": asked.speculation})
        context = {"repository": str(self._stage.repository)} if "repository" in asked.what.context else {}
        return {"workflow": asked.what.model_copy(update={"options": options}), "context": context}

    async def _outcome(self, summary: RunSummary, events: list[Event]) -> Outcome:
        ended = (event.data for event in events if isinstance(event.data, TaskEnded))
        tools = {data.task_id: data.tool for data in ended}
        tasks = {
            task_id: await self._result(tools.get(task_id, ""), summary, task_id)
            for task_id in summary.results
        }
        world = await asyncio.to_thread(self._stage.digest)
        return Outcome(summary.status, tasks, world, _ended(events).decisions)

    async def _result(self, tool: str, summary: RunSummary, task_id: str) -> TaskResult:
        task = summary.results[task_id]
        if task.result_ref is None:
            code = str(task.error["code"]) if task.error else None
            return TaskResult(task.status, error_code=code)
        value = task_value(await self._results.read(task.result_ref))
        return TaskResult(task.status, value, volatile=self._stage.is_volatile(tool))


def _ended(events: list[Event]) -> RunEnded:
    return next(event.data for event in reversed(events) if isinstance(event.data, RunEnded))


def _final(event: Event) -> bool:
    """Whether no other attempt follows."""
    return bool(getattr(event.data, "final", True))
