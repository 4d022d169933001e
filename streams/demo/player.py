"""An agent that plays sessions: it waits for each answer and then thinks."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Literal

from pml.schemas.calls import task_value
from pml.schemas.workflow import Options
from pml.streams.client import IntentProducer, ResultReader, wait_for_run
from pml.streams.demo.comparison import Outcome, TaskResult
from pml.streams.demo.runs import RUN_TIMEOUT_S
from pml.streams.demo.sessions import DemoSession
from pml.streams.settings import Settings

PRINCIPAL = "demo"


class Player:
    """Plays sessions, one after another, as an agent does that waits for each answer and then thinks."""

    def __init__(
        self, settings: Settings, tenant: str, producer: IntentProducer, results: ResultReader
    ) -> None:
        self.settings, self.tenant = settings, tenant
        self._producer, self._results = producer, results
        self.run_ids: list[str] = []

    async def play(
        self, session: DemoSession, name: str, speculation: Literal["on", "off"], thinks_s: float
    ) -> tuple[float, list[Outcome]]:
        """How long somebody waited for it, in ms, and what each of its workflows came to."""
        waited_ms, outcomes = 0.0, []
        for number, workflow in enumerate(session.steps):
            await asyncio.sleep(thinks_s if number else 0)
            options = Options(speculation=speculation)
            began = time.perf_counter()
            submission = await self._producer.start_run(
                workflow.model_copy(update={"options": options}),
                session_id=name,
                tenant=self.tenant,
                request=session.request,
                principal=PRINCIPAL,
            )
            summary = await wait_for_run(self.settings, submission, timeout_s=RUN_TIMEOUT_S)
            waited_ms += (time.perf_counter() - began) * 1_000
            self.run_ids.append(summary.run_id)
            tasks = {name: await self._result(task) for name, task in summary.results.items()}
            outcomes.append(Outcome(summary.status, tasks, ""))
        return waited_ms, outcomes

    async def _result(self, task: Any) -> TaskResult:
        if task.result_ref is None:
            return TaskResult(task.status, error_code=str(task.error["code"]) if task.error else None)
        return TaskResult(task.status, task_value(await self._results.read(task.result_ref)))
