"""A run has ended: what does its session do next (spec story 12.4)? `pml:predict` is asked, calls are begun.

Nobody waits for the answer. The calls that it brings belong to the run that has ended; one that still runs
when the next run begins without it was wrong. A result that is there costs nothing more, and waits for later
runs until it is too old or something is written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pydantic import ValidationError

from pml.processors.speculation.predictions import act_on
from pml.processors.workflow.check import check_prediction
from pml.processors.workflow.draft import Draft
from pml.processors.workflow.elements import told
from pml.processors.workflow.evolve import joined_calls
from pml.processors.workflow.internal import begin_internal, end_with, error_of, give_up
from pml.processors.workflow.plans import drop_foreseen
from pml.processors.workflow.settling import end_each
from pml.processors.workflow.state import Internal, Run, Speculation
from pml.schemas.calls import CallEnded
from pml.schemas.errors import WorkflowInvalid
from pml.schemas.prediction import PREDICT_TOOL, PredictAnswer

PREDICT_TIMEOUT_MS = 5_000
"""Most agents have called again by then; a bridge that has just started loads its model first."""


def begin_prediction(draft: Draft, run_id: str) -> None:
    """Ask what comes next, where an answer could be used; whoever stops a run wants nothing next."""
    run = draft.run(run_id)
    ended = run.status in {"completed", "failed"}
    if not (run.predicts and ended and draft.session.past) or draft.catalog.general_mode == "off":
        return
    begin_internal(draft, run, PREDICT_TOOL, told(draft.session), PREDICT_TIMEOUT_MS)


def end_prediction(draft: Draft, item: Internal, outcome: CallEnded) -> None:
    """What may come next is known, or is not."""
    answer = _answer(outcome)
    if answer is None:
        end_with(draft, item, None, error_of(outcome), outcome.duration_ms)
        return
    end_with(draft, item, _kept(answer), None, outcome.duration_ms)
    act_on(draft, item, answer)


def give_up_prediction(draft: Draft, item: Internal) -> None:
    """Nobody answered in time."""
    give_up(draft, item)


def give_way(draft: Draft, run: Run) -> None:
    """A layer of a run was released: what was predicted before it and still runs was wrong, unless the run
    has yet to call that tool. It would hold up others for nothing."""
    assert run.graph is not None
    if run.sandbox is not None:
        return  # nobody knows what a program calls next
    ahead = {node.tool for name, node in run.graph.nodes.items() if run.unreleased(name)}
    wrong = [entry for entry in _running(draft, run) if entry.tool not in ahead]
    end_each(draft, wrong, "discarded", "unused")


def supersede(draft: Draft, run: Run) -> None:
    """A run has ended: what was predicted before it and still runs was wrong. What has its result may be the
    call after the next."""
    end_each(draft, _running(draft, run), "discarded", "unused")
    drop_foreseen(draft, run.started_ms)


def _running(draft: Draft, run: Run) -> list[Speculation]:
    """What was predicted before a run began, has no result yet, and nobody asked for: no task has joined it,
    and it goes on with no result that was taken."""
    entries = draft.session.speculations
    found = [
        entry
        for entry in entries.values()
        if entry.kind == "prediction" and entry.status == "running"
        if not entry.served and entry.call.started_ms <= run.started_ms
    ]
    if not found:
        return []
    joined = joined_calls(draft.session)
    taken = joined | _taken(draft, run)
    return [
        entry
        for entry in found
        if entry.call.call_id not in joined and not _goes_on_with(entry, entries, taken)
    ]


def _taken(draft: Draft, run: Run) -> set[str]:
    """The calls whose results served this run, or another that still runs: what had been of use before says
    nothing about what was begun with it later."""
    runs = [run, *(each for each in draft.runs if each.live)]
    served = {task.serves for each in runs for task in each.tasks.values()}
    entries = draft.session.speculations.items()
    return {call_id for call_id, each in entries if each.call.started_seq in served}


def _goes_on_with(entry: Speculation, entries: Mapping[str, Speculation], taken: Collection[str]) -> bool:
    """Whether its arguments are from one of these calls, through others too; each is looked at once."""
    seen: set[str] = set()
    waiting = [source.call_id for source in entry.sources]
    while waiting:
        call_id = waiting.pop()
        if call_id in taken:
            return True
        if call_id not in seen and call_id in entries:
            seen.add(call_id)
            waiting += [source.call_id for source in entries[call_id].sources]
    return False


def _answer(outcome: CallEnded) -> PredictAnswer | None:
    told_back: Any = outcome.result.structured if outcome.status == "ok" and outcome.result else None
    try:
        answer = None if told_back is None else PredictAnswer.model_validate(told_back)
        if answer is not None and answer.workflow is not None:
            check_prediction(answer.workflow)
    except (ValidationError, WorkflowInvalid):
        return None
    return answer


def _kept(answer: PredictAnswer) -> dict[str, Any]:
    """What the log keeps: `prediction.made` tells the rest."""
    return {"model": answer.model, "learner": answer.learner, "candidates": len(answer.candidates)}
