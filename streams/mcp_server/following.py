"""Waiting for a run, for as long as the caller can and no longer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pml.schemas.analysis import ANALYSE_TOOL
from pml.schemas.errors import PMLError, WaitedTooLong
from pml.schemas.events import Event, InternalEnded, RunExpanded, RunReplanned, RunStarted
from pml.streams.client import Submission, wait_for_run
from pml.streams.mcp_server.door import Call
from pml.streams.mcp_server.progress import Progress, telling
from pml.streams.mcp_server.run_answer import DagAnswer, RunAnswer, ended_and_early, run_answer
from pml.streams.run_summary import RunSummary, observe

NOBODY_YET = "Nobody has taken it yet; if that stays so, no orchestrator is running: `pml status` says so."


class Watch:
    """A run as far as its events were seen."""

    def __init__(self, submission: Submission) -> None:
        self.summary = RunSummary(submission.run_id, submission.session_id, submission.tenant)
        self.dag: DagAnswer | None = None
        self.tasks = 0
        self.seen = False

    def see(self, event: Event) -> None:
        """One more event of the run."""
        self.seen = True
        self.summary = observe(self.summary, event)
        self.dag = dag_after(self.dag, event)
        if isinstance(event.data, (RunStarted, RunExpanded, RunReplanned)):
            self.tasks = event.data.tasks


def dag_after(dag: DagAnswer | None, event: Event) -> DagAnswer | None:
    """What is known of a run's program after one more event; None for a run that has none."""
    data = event.data
    if isinstance(data, RunStarted):
        return DagAnswer() if data.code is not None else None
    if dag is None:
        return None
    if isinstance(data, InternalEnded) and data.tool == ANALYSE_TOOL:
        return _analysed(dag, data)
    if isinstance(data, RunExpanded):
        return _expanded(dag, data)
    return dag


def _analysed(dag: DagAnswer, data: InternalEnded) -> DagAnswer:
    answer = data.answer or {}
    return dag.model_copy(
        update={
            "mode": answer.get("mode"),
            "reason": data.error.message if data.error else None,
            "tools_discovered": _tools(answer.get("structure")),
        }
    )


def _expanded(dag: DagAnswer, data: RunExpanded) -> DagAnswer:
    """A structure that was too large for the log has no tools there; the tasks have them.

    Out of the sandbox come tools that nobody could know before, layer by layer.
    """
    called = _tools({"nodes": data.definition.get("tasks", ())})
    known = dag.tools_discovered
    tools = tuple(dict.fromkeys((*known, *called))) if data.mode == "sandbox" else known or called
    told: dict[str, Any] = {
        "mode": data.mode or "dag",
        "tasks_count": data.tasks,
        "layers_count": data.layers,
    }
    if data.reasons:
        told["reason"] = "; ".join(data.reasons)
    return dag.model_copy(update={"tools_discovered": tools, **told})


def _tools(structure: Any) -> tuple[str, ...]:
    """The tools that a structure may call, in the order of their first call."""
    nodes = structure.get("nodes", ()) if isinstance(structure, dict) else ()
    named = (node.get("tool") for node in nodes if isinstance(node, dict))
    return tuple(dict.fromkeys(tool for tool in named if isinstance(tool, str)))


async def follow(call: Call, submission: Submission, wait_s: float) -> RunAnswer:
    """How a run ended or what it waits for; where that takes longer than `wait_s`, that it goes on.

    Every error names the run: the command was taken.

    Raises:
        Refused: the command was rejected.
        Busy: as many requests wait as may.
        BrokerUnavailable: no broker answers.
    """
    watch = Watch(submission)
    try:
        with call.door.waiting.one_more():
            return run_answer(await _end(call, submission, watch, wait_s), watch.dag)
    except WaitedTooLong:
        return going_on(watch)
    except PMLError as error:
        error.details.setdefault("run_id", submission.run_id)
        raise


async def _end(call: Call, submission: Submission, watch: Watch, wait_s: float) -> RunSummary:
    async with telling(call.report) as progress:
        return await wait_for_run(
            call.door.settings,
            submission,
            timeout_s=wait_s,
            on_event=lambda event: _seen(watch, progress, event),
            until_waiting=True,
        )


def _seen(watch: Watch, progress: Progress, event: Event) -> None:
    watch.see(event)
    ended, early = ended_and_early(watch.summary.results.values())
    progress.tell(ended, watch.tasks, early)


def going_on(watch: Watch) -> RunAnswer:
    """A run that nobody waits for any longer."""
    status = "running" if watch.seen else "queued"
    summary = replace(watch.summary, status=status, waits_for={})
    return run_answer(summary, watch.dag, None if watch.seen else NOBODY_YET)
