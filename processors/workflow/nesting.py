"""A run of a workflow that calls capabilities: their tasks take the place of the calls first (DESIGN §5).

As a run of a program it is there at once, without tasks, and waits for `pml:inline`; the tasks that the
answer brings are its first plan.
"""

from __future__ import annotations

from pydantic import ValidationError

from pml.processors.workflow.advance import fail_run
from pml.processors.workflow.beforehand import begin
from pml.processors.workflow.draft import Draft
from pml.processors.workflow.expanding import expanded
from pml.processors.workflow.internal import ask_memory, begin_internal, end_with, error_of, give_up
from pml.processors.workflow.settling import safe_error
from pml.processors.workflow.state import Internal
from pml.schemas.calls import CallEnded, CallError
from pml.schemas.errors import PMLError, Refused
from pml.schemas.events import RunExpanded
from pml.schemas.inlining import INLINE_TOOL, InlineAnswer

# The catalog is read up to its end; a bridge that has just started reads all of it.
INLINE_TIMEOUT_MS = 20_000
_NO_ANSWER = CallError(
    code="INLINE_TIMEOUT",
    type="TIMEOUT",
    message="nobody looked up the capabilities of the workflow in time; is the bridge running?",
    retryable=True,
)


class NotInlined(Refused):
    """The server `pml` gave no workflow."""

    def __init__(self, error: CallError) -> None:
        super().__init__(error.message)
        self.code = error.code


def begin_inlining(draft: Draft, run_id: str) -> None:
    """Have the capabilities of a run's workflow looked up; until then it has no tasks and does not end."""
    begin_internal(draft, draft.run(run_id), INLINE_TOOL, {}, INLINE_TIMEOUT_MS)


def end_inlining(draft: Draft, item: Internal, outcome: CallEnded) -> None:
    """The workflow begins, or the run fails with the reason."""
    try:
        begun = _begun(draft, item.run_id, outcome)
    except PMLError as error:
        failure = CallError(code=error.code, type="VALIDATION", message=error.message)
        end_with(draft, item, None, safe_error(failure), outcome.duration_ms)
        fail_run(draft, item.run_id, error)
        return
    end_with(draft, item, {}, None, outcome.duration_ms)
    draft.emit(begun, draft.run(item.run_id))
    ask_memory(draft, item.run_id)
    begin(draft, item.run_id)


def give_up_inlining(draft: Draft, item: Internal) -> None:
    """Nobody answered in time."""
    give_up(draft, item, _NO_ANSWER)
    fail_run(draft, item.run_id, NotInlined(_NO_ANSWER))


def _begun(draft: Draft, run_id: str, outcome: CallEnded) -> RunExpanded:
    """
    Raises:
        NotInlined: there is no workflow.
        WorkflowInvalid: it cannot run.
    """
    run = draft.run(run_id)
    workflow = _answer(outcome).workflow.model_copy(update={"workflow_type": run.workflow_type})
    return expanded(draft, run_id, workflow, (), run.capability_id)


def _answer(outcome: CallEnded) -> InlineAnswer:
    if outcome.status != "ok" or outcome.result is None:
        raise NotInlined(error_of(outcome))
    try:
        return InlineAnswer.model_validate(outcome.result.structured)
    except ValidationError:
        raise NotInlined(error_of(outcome)) from None
