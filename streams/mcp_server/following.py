"""Waiting for a run, for as long as the caller can and no longer."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from pml.schemas.analysis import ANALYSE_TOOL
from pml.schemas.commands import ApprovalDecide
from pml.schemas.errors import PMLError, Refused, WaitedTooLong
from pml.schemas.events import Event, InternalEnded, RunExpanded, RunReplanned, RunStarted
from pml.streams.client import Submission, wait_for_run
from pml.streams.mcp_server.door import Call
from pml.streams.mcp_server.form import open_form
from pml.streams.mcp_server.progress import Progress, telling
from pml.streams.mcp_server.run_answer import DagAnswer, RunAnswer, ended_and_early, run_answer
from pml.streams.run_summary import RunSummary, observe

GRACE_S = 2.0
NOBODY_YET = "Nobody has taken it yet; if that stays so, no orchestrator is running: `pml status` says so."


class Watch:
    """A run as far as its events were seen."""

    def __init__(self, submission: Submission) -> None:
        self.seen = False
        self.begin_again(submission)

    def begin_again(self, submission: Submission) -> None:
        """What was sent last brings all events of the run from its first on."""
        self.submission = submission
        self.summary = RunSummary(submission.run_id, submission.session_id, submission.tenant)
        self.dag: DagAnswer | None = None
        self.tasks = 0

    def see(self, event: Event) -> None:
        """One more event of the run."""
        self.seen = True
        self.summary = observe(self.summary, event)
        self.dag = dag_after(self.dag, event)
        if isinstance(event.data, (RunStarted, RunExpanded, RunReplanned)):
            self.tasks = event.data.tasks


def dag_after(dag: DagAnswer | None, event: Event) -> DagAnswer | None:
    """What is known of a run without tasks of its own after one more event; None for any other."""
    data = event.data
    if isinstance(data, RunStarted):
        return DagAnswer() if data.code is not None or not data.tasks else None
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
    tools = (
        tuple(dict.fromkeys((*known, *called))) if data.mode == "sandbox" or data.grows else known or called
    )
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
            async with telling(call.report) as progress:
                return await _followed(call, watch, progress, wait_s)
    except WaitedTooLong:
        return going_on(watch)
    except PMLError as error:
        error.details.setdefault("run_id", submission.run_id)
        raise


async def _followed(call: Call, watch: Watch, progress: Progress, wait_s: float) -> RunAnswer:
    """The run as it ended, or as it waits for what no person at the client has decided.

    Raises:
        InputNeeded: the client is to ask a person first, and to come again.
    """
    now_s = asyncio.get_running_loop().time
    ends_s, first = now_s() + wait_s, watch.submission
    while True:
        wait_s = max(ends_s - now_s(), 0.0)
        try:
            summary = await _end(call, watch, progress, wait_s)
        except Refused:
            if watch.submission is first:
                raise
            # Somebody else decided, so that it goes on: what it comes to is waited for.
            watch.begin_again(first)
            summary = await _end(call, watch, progress, wait_s, until_waiting=False)
        word = await _word(call, summary, ends_s - now_s())
        if word is None:
            return run_answer(summary, watch.dag)
        watch.begin_again(await send_word(call, summary.run_id, summary.session_id, word))
        # Somebody decided just now: they want to see that it goes on.
        ends_s = max(ends_s, now_s() + GRACE_S)


async def _word(call: Call, summary: RunSummary, patience_s: float) -> ApprovalDecide | None:
    """What a person at the client says of what the run waits for; None where nobody does."""
    found = open_form(summary.waits_for, summary.run_id, summary.name) if call.person else None
    if call.person is None or found is None:
        return None
    place = {"run_id": summary.run_id, "session_id": summary.session_id}
    return await call.person.ask(*found, place, patience_s)


async def send_word(call: Call, run_id: str, session_id: str, word: ApprovalDecide) -> Submission:
    """Send what a person said, in their name."""
    assert call.person is not None
    return await call.door.producer.decide(
        run_id,
        word,
        session_id=session_id,
        tenant=call.caller.tenant,
        principal=call.person.principal,
        traceparent=call.traceparent,
    )


async def _end(
    call: Call, watch: Watch, progress: Progress, wait_s: float, *, until_waiting: bool = True
) -> RunSummary:
    return await wait_for_run(
        call.door.settings,
        watch.submission,
        timeout_s=wait_s,
        on_event=lambda event: _seen(watch, progress, event),
        until_waiting=until_waiting,
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
