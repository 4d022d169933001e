"""A run has ended: what does its session do next (spec story 12.4)? `pml:predict` is asked, calls are begun.

Nobody waits for the answer. The calls that it brings belong to the run that has ended; a run that ends later
without their use has shown that they were wrong.
"""

from __future__ import annotations

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
from pml.processors.workflow.state import Internal, Run
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


def supersede(draft: Draft, run: Run) -> None:
    """A run has ended: what was predicted before it began, and that it did not use, was wrong."""
    joined = joined_calls(draft.session)
    wrong = [
        entry
        for call_id, entry in draft.session.speculations.items()
        if entry.kind == "prediction" and not entry.served and call_id not in joined
        if entry.call.started_ms <= run.started_ms
    ]
    end_each(draft, wrong, "discarded", "unused")
    drop_foreseen(draft, run.started_ms)


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
