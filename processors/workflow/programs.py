"""A run that begins with a program: it is analysed first, and then has its tasks (spec story 10.5).

The run is there at once, without tasks, and waits for `pml:analyse`. The answer rests where results rest; the
tasks that it brings are the run's first plan, whose literals are read from there as those of a replan are
read from its command.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from pml.processors.workflow.advance import fail_run
from pml.processors.workflow.beforehand import begin
from pml.processors.workflow.definitions import bounded, safe_argument, safe_text
from pml.processors.workflow.draft import Draft, full_context
from pml.processors.workflow.expanding import check_parameters, expanded, with_options
from pml.processors.workflow.internal import ask_memory, begin_internal, end_with, error_of, give_up
from pml.processors.workflow.settling import safe_error
from pml.processors.workflow.state import Internal
from pml.processors.workflow.stepping import REASONS_SHOWN, begin_sandbox
from pml.schemas.analysis import ANALYSE_TOOL, AnalyseAnswer
from pml.schemas.calls import CallEnded, CallError
from pml.schemas.commands import Code
from pml.schemas.errors import PMLError, Refused
from pml.schemas.events import RunExpanded
from pml.schemas.sanitiser import sanitise
from pml.schemas.structure import (
    CapabilityNode,
    DecisionNode,
    LoopNode,
    Structure,
    StructureNode,
    StructureParameter,
    TaskNode,
)

# The largest program there may be takes seconds on a busy machine.
ANALYSE_TIMEOUT_MS = 20_000
_NO_ANSWER = CallError(
    code="ANALYSIS_TIMEOUT",
    type="TIMEOUT",
    message="nobody analysed the program in time; is the bridge running?",
    retryable=True,
)


class Unanalysed(Refused):
    """The server `pml` gave no structure."""

    def __init__(self, error: CallError) -> None:
        super().__init__(error.message)
        self.code = error.code


def begin_analysis(draft: Draft, run_id: str, code: Code) -> None:
    """Have the program of a run analysed; until then it has no tasks and does not end."""
    told = {"language": code.language} if code.language else {}
    begin_internal(draft, draft.run(run_id), ANALYSE_TOOL, told, ANALYSE_TIMEOUT_MS)


def end_analysis(draft: Draft, item: Internal, outcome: CallEnded) -> None:
    """The program of a run is understood and begins, or the run fails with the reason."""
    try:
        answer = _answer(outcome)
        kept = _kept(draft, item.run_id, answer)
        begun = _begun(draft, item.run_id, answer)
    except PMLError as error:
        failure = CallError(code=error.code, type="VALIDATION", message=error.message)
        end_with(draft, item, None, safe_error(failure), outcome.duration_ms)
        fail_run(draft, item.run_id, error)
        return
    end_with(draft, item, kept, None, outcome.duration_ms)
    if begun is None:
        assert answer.program is not None
        begin_sandbox(draft, item.run_id, answer.program, answer.capability_id)
        return
    draft.emit(begun, draft.run(item.run_id))
    ask_memory(draft, item.run_id)
    begin(draft, item.run_id)


def give_up_analysis(draft: Draft, item: Internal) -> None:
    """Nobody answered in time."""
    give_up(draft, item, _NO_ANSWER)
    fail_run(draft, item.run_id, Unanalysed(_NO_ANSWER))


def _answer(outcome: CallEnded) -> AnalyseAnswer:
    """
    Raises:
        Unanalysed: there is none.
    """
    if outcome.status != "ok" or outcome.result is None:
        raise Unanalysed(error_of(outcome))
    try:
        return AnalyseAnswer.model_validate(outcome.result.structured)
    except ValidationError:
        raise Unanalysed(error_of(outcome)) from None


def _begun(draft: Draft, run_id: str, answer: AnalyseAnswer) -> RunExpanded | None:
    """The tasks of a program; None where they come in parts.

    Raises:
        WorkflowInvalid: they cannot run, or not with this context.
    """
    if answer.workflow is None:
        if answer.mode == "dag":
            start = draft.payload(draft.run(run_id).payload)
            check_parameters(answer.structure.parameters, full_context(start))
        return None
    workflow = with_options(draft, run_id, answer.workflow)
    return expanded(draft, run_id, workflow, answer.structure.parameters, answer.capability_id)


def _kept(draft: Draft, run_id: str, answer: AnalyseAnswer) -> dict[str, Any]:
    """What the log keeps of an analysis: all that a capability's record is made of.

    Raises:
        WorkflowInvalid: the structure is larger than the log keeps.
    """
    start = draft.payload(draft.run(run_id).payload)
    kept = {
        "language": answer.language,
        "capability_id": answer.capability_id,
        "mode": answer.mode,
        "structure": _safe_structure(answer.structure).model_dump(mode="json", exclude_none=True),
    }
    if answer.reasons:
        kept["reasons"] = [safe_text(reason) or "" for reason in answer.reasons[:REASONS_SHOWN]]
    told = {"intent": safe_text(start.intent), "source": safe_text(start.code.source)}
    return bounded(kept, "the structure of the program") | told


def _safe_structure(structure: Structure) -> Structure:
    """A structure without the secrets that its program has written down."""
    result = structure.result
    return structure.model_copy(
        update={
            "nodes": tuple(_safe_node(node) for node in structure.nodes),
            "parameters": tuple(_safe_parameter(item) for item in structure.parameters),
            "result": None if result is None else safe_argument("result", result),
            "unsupported": tuple(
                item.model_copy(update={"reason": safe_text(item.reason)}) for item in structure.unsupported
            ),
        }
    )


def _safe_node(node: StructureNode) -> StructureNode:
    match node:
        case TaskNode(arguments=arguments) | CapabilityNode(arguments=arguments):
            safe = {name: safe_argument(name, value) for name, value in arguments.items()}
            return node.model_copy(update={"arguments": safe})
        case DecisionNode(condition=condition, expression=expression, code=code, names=names):
            texts = {"condition": condition, "expression": expression, "code": code}
            told: dict[str, Any] = {name: safe_text(text) or text for name, text in texts.items()}
            told["names"] = {name: safe_argument(name, value) for name, value in names.items()}
            return node.model_copy(update=told)
        case LoopNode(items=items, each=each):
            told = {"items": safe_argument("items", items)}
            told["each"] = None if each is None else safe_argument("each", each)
            return node.model_copy(update=told)
    return node


def _safe_parameter(parameter: StructureParameter) -> StructureParameter:
    safe = sanitise({parameter.name: parameter.default})
    default = safe.get(parameter.name) if isinstance(safe, dict) else safe
    return parameter.model_copy(update={"default": default})
