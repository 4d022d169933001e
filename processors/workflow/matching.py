"""A run that begins with nothing but an intent: the capability that it means is found (spec story 10.7).

As a run of a program it is there at once, without tasks, and waits for `pml:match`. The tasks that the answer
brings are its first plan; their literals are read from there.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from pml.processors.workflow.advance import fail_run
from pml.processors.workflow.beforehand import begin
from pml.processors.workflow.draft import Draft, full_context
from pml.processors.workflow.expanding import check_parameters, expanded, with_options
from pml.processors.workflow.internal import ask_memory, begin_internal, end_with, error_of, give_up
from pml.processors.workflow.settling import safe_error
from pml.processors.workflow.state import Internal
from pml.processors.workflow.stepping import begin_sandbox
from pml.schemas.calls import CallEnded, CallError
from pml.schemas.errors import PMLError, Refused, WorkflowInvalid
from pml.schemas.events import RunExpanded
from pml.schemas.matching import MATCH_TOOL, MatchAnswer
from pml.schemas.sanitiser import sanitise, sanitise_text

# A bridge that has just started loads its model first, which takes seconds on a busy machine.
MATCH_TIMEOUT_MS = 20_000
# Which of them a capability takes is all that is asked; a context has a few.
NAMES_TOLD = 200
NAME_BYTES_MAX = 200
_NO_ANSWER = CallError(
    code="MATCH_TIMEOUT",
    type="TIMEOUT",
    message="nobody looked for a capability in time; is the bridge running?",
    retryable=True,
)


class Unmatched(Refused):
    """The server `pml` gave no answer."""

    def __init__(self, error: CallError) -> None:
        super().__init__(error.message)
        self.code = error.code


def begin_match(draft: Draft, run_id: str) -> None:
    """Look for the capability that the intent of a run means; until then it has no tasks and does not end."""
    run = draft.run(run_id)
    names = sorted(full_context(draft.payload(run.payload)))[:NAMES_TOLD]
    told = {
        "tenant": draft.session.tenant,
        "context": [name for name in names if sanitise_text(name, NAME_BYTES_MAX) == name],
    }
    begin_internal(draft, run, MATCH_TOOL, told, MATCH_TIMEOUT_MS)


def end_match(draft: Draft, item: Internal, outcome: CallEnded) -> None:
    """The capability that is meant begins, or the run fails and says what there is instead."""
    try:
        answer = _answer(outcome)
    except PMLError as error:
        failure = CallError(code=error.code, type="VALIDATION", message=error.message)
        end_with(draft, item, None, safe_error(failure), outcome.duration_ms)
        fail_run(draft, item.run_id, error)
        return
    end_with(draft, item, _kept(answer), None, outcome.duration_ms)
    try:
        begun = _begun(draft, item.run_id, answer)
    except PMLError as error:
        fail_run(draft, item.run_id, error)
        return
    if begun is None:
        assert answer.program is not None
        begin_sandbox(draft, item.run_id, answer.program, answer.capability_id or "")
        return
    draft.emit(begun, draft.run(item.run_id))
    ask_memory(draft, item.run_id)
    begin(draft, item.run_id)


def give_up_match(draft: Draft, item: Internal) -> None:
    """Nobody answered in time."""
    give_up(draft, item, _NO_ANSWER)
    fail_run(draft, item.run_id, Unmatched(_NO_ANSWER))


def _begun(draft: Draft, run_id: str, answer: MatchAnswer) -> RunExpanded | None:
    """The tasks of a capability; None where it is no DAG.

    Raises:
        WorkflowInvalid: nothing is meant for certain, or the context lacks something.
    """
    details = {"suggestions": [each.model_dump(mode="json") for each in answer.suggestions]}
    if answer.missing:
        message = f"{answer.name} takes {', '.join(answer.missing)}, which the context does not give"
        raise WorkflowInvalid("MISSING_PARAMETER", message, missing=list(answer.missing), **details)
    if answer.program is not None:
        check_parameters(answer.parameters, full_context(draft.payload(draft.run(run_id).payload)))
        return None
    if answer.workflow is None or answer.capability_id is None:
        reason = answer.reason or "no learned capability fits"
        message = f"{reason}; send code or a workflow with the intent"
        raise WorkflowInvalid("NO_CAPABILITY", message, **details)
    workflow = with_options(draft, run_id, answer.workflow)
    return expanded(draft, run_id, workflow, answer.parameters, answer.capability_id)


def _answer(outcome: CallEnded) -> MatchAnswer:
    """
    Raises:
        Unmatched: there is none.
    """
    if outcome.status != "ok" or outcome.result is None:
        raise Unmatched(error_of(outcome))
    try:
        return MatchAnswer.model_validate(outcome.result.structured)
    except ValidationError:
        raise Unmatched(error_of(outcome)) from None


def _kept(answer: MatchAnswer) -> dict[str, Any]:
    """What the log keeps of an answer: all but the workflow or program, which `run.expanded` tells of."""
    told = answer.model_dump(mode="json", exclude={"workflow", "program", "parameters"}, exclude_none=True)
    kept = sanitise(told)
    return kept if isinstance(kept, dict) else {}
