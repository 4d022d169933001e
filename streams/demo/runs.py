"""One run of a workflow, the way any user runs one, and what it came to."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Literal

from pml.schemas.calls import task_value
from pml.schemas.events import Event, RunEnded, SpeculationEnded, TaskEnded
from pml.schemas.workflow import Workflow
from pml.streams.client import IntentProducer, ResultReader, RunSummary, wait_for_run
from pml.streams.demo.comparison import Outcome, TaskResult
from pml.streams.demo.stage import Stage

# The longest example takes about a second; a machine may be busy.
RUN_TIMEOUT_S = 120
# A result that came a few milliseconds early is a hit, but nobody would notice.
SMALL_SAVING_MS = 5.0

Mode = Literal["on", "off"]


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

    async def measure(self, workflow: Workflow, speculation: Mode) -> Measured:
        """Rebuild the world, run the workflow, and keep everything that came of it."""
        await asyncio.to_thread(self._stage.rebuild)
        position = self._stage.call_log.stat().st_size
        events: list[Event] = []
        began = time.perf_counter()
        summary = await self.run(workflow, speculation, events)
        wall_ms = (time.perf_counter() - began) * 1_000
        ended = [event.data for event in events if isinstance(event.data, SpeculationEnded)]
        early = [event.data.early for event in events if isinstance(event.data, TaskEnded) and _final(event)]
        return Measured(
            wall_ms=wall_ms,
            summary=summary,
            outcome=await self._outcome(workflow, summary, events),
            savings_ms=tuple(data.saved_ms for data in ended if data.fate == "served"),
            speculated=any(event.type == "speculation.started" for event in events),
            unsafe_speculations=await asyncio.to_thread(self._stage.unsafe_speculations, position),
            eligible=sum(told is not None for told in early),
            eligible_speculated=early.count("speculated"),
        )

    async def run(self, workflow: Workflow, speculation: Mode, events: list[Event]) -> RunSummary:
        """Submit a workflow on the stage's repository and wait for its end."""
        options = workflow.options.model_copy(update={"speculation": speculation})
        context = {"repository": str(self._stage.repository)} if "repository" in workflow.context else {}
        submission = await self._producer.start_run(
            workflow.model_copy(update={"options": options}), context=context, principal="demo"
        )
        return await wait_for_run(
            self._stage.settings, submission, timeout_s=RUN_TIMEOUT_S, on_event=events.append
        )

    async def _outcome(self, workflow: Workflow, summary: RunSummary, events: list[Event]) -> Outcome:
        tools = {task.id: task.tool or "" for task in workflow.tasks}
        tasks = {task_id: await self._result(tools[task_id], summary, task_id) for task_id in summary.results}
        ended = next(event.data for event in reversed(events) if isinstance(event.data, RunEnded))
        world = await asyncio.to_thread(self._stage.digest)
        return Outcome(summary.status, tasks, world, ended.decisions)

    async def _result(self, tool: str, summary: RunSummary, task_id: str) -> TaskResult:
        task = summary.results[task_id]
        if task.result_ref is None:
            code = str(task.error["code"]) if task.error else None
            return TaskResult(task.status, error_code=code)
        value = task_value(await self._results.read(task.result_ref))
        return TaskResult(task.status, value, volatile=self._stage.is_volatile(tool))


def _final(event: Event) -> bool:
    """Whether no other attempt follows."""
    return bool(getattr(event.data, "final", True))
