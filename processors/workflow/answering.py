"""Answers of the built-in server `pml`, or none in time: each goes to what asked for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pml.processors.workflow.draft import Draft
from pml.processors.workflow.internal import end_recall, give_up
from pml.processors.workflow.matching import end_match, give_up_match
from pml.processors.workflow.nesting import end_inlining, give_up_inlining
from pml.processors.workflow.predicting import end_prediction, give_up_prediction
from pml.processors.workflow.programs import end_analysis, give_up_analysis
from pml.processors.workflow.state import Internal
from pml.processors.workflow.stepping import end_step, give_up_step
from pml.schemas.analysis import ANALYSE_TOOL
from pml.schemas.calls import CallEnded
from pml.schemas.inlining import INLINE_TOOL
from pml.schemas.matching import MATCH_TOOL
from pml.schemas.memory import RECALL_TOOL
from pml.schemas.prediction import PREDICT_TOOL
from pml.schemas.stepping import STEP_TOOL


class _Asker(NamedTuple):
    end: Callable[[Draft, Internal, CallEnded], None]
    give_up: Callable[[Draft, Internal], None]


_ASKERS = {
    RECALL_TOOL: _Asker(end_recall, give_up),
    ANALYSE_TOOL: _Asker(end_analysis, give_up_analysis),
    INLINE_TOOL: _Asker(end_inlining, give_up_inlining),
    MATCH_TOOL: _Asker(end_match, give_up_match),
    STEP_TOOL: _Asker(end_step, give_up_step),
    PREDICT_TOOL: _Asker(end_prediction, give_up_prediction),
}


def end_internal(draft: Draft, item: Internal, outcome: CallEnded) -> None:
    """An answer came, or an error in its place."""
    _ASKERS[item.tool].end(draft, item, outcome)


def give_up_internal(draft: Draft, item: Internal) -> None:
    """No answer came in time."""
    _ASKERS[item.tool].give_up(draft, item)
