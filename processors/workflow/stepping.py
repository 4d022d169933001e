"""A run of a program that is no DAG: what it asks for becomes tasks, step by step (ADR 14; DESIGN §6).

The program runs in a sandbox at the bridge until it waits for calls. Those become the next layer of the run,
which runs as any other; then the program is asked again. A failed task is an error that it may catch.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from pml.processors.workflow.advance import advance, end_as, fail_run, summary
from pml.processors.workflow.beforehand import begin
from pml.processors.workflow.check import check_calls
from pml.processors.workflow.definitions import safe_definition, safe_text
from pml.processors.workflow.draft import Draft
from pml.processors.workflow.folding import coordinate_of
from pml.processors.workflow.graph import grown
from pml.processors.workflow.internal import end_with, error_of, give_up
from pml.processors.workflow.settling import discard_all, safe_error
from pml.processors.workflow.state import Internal, Run
from pml.schemas.calls import CallEnded, CallError
from pml.schemas.errors import PMLError, Refused
from pml.schemas.events import RunCompleted, RunExpanded
from pml.schemas.sanitiser import sanitise, sanitise_text
from pml.schemas.stepping import ProgramError, SandboxProgram, StepAnswer
from pml.schemas.workflow import Task, Workflow

REASONS_SHOWN = 20
ERROR_BYTES_MAX = 2_048
# Layers order the calls; two of 200 would have 40,000 edges between them.
DEPENDENCIES_SHOWN = 10
_NO_ANSWER = CallError(
    code="STEP_TIMEOUT",
    type="TIMEOUT",
    message="nobody ran the program in time; is the bridge running?",
    retryable=True,
)


class Unstepped(Refused):
    """The server `pml` gave no step of a program."""

    def __init__(self, error: CallError) -> None:
        super().__init__(error.message)
        self.code = error.code


class ProgramFailed(Refused):
    """A program ended with an error that it did not catch, or was stopped."""

    def __init__(self, error: ProgramError) -> None:
        where = "" if error.line is None else f"line {error.line}: "
        super().__init__(f"{where}{error.message}", **({} if error.line is None else {"line": error.line}))
        self.code = error.code


def begin_sandbox(draft: Draft, run_id: str, program: SandboxProgram, capability_id: str) -> None:
    """Say that a program runs in the sandbox, and why; it has no tasks before it asks for some.

    Args:
        program: which the input that is being decided has written down in full.
    """
    run = draft.run(run_id)
    assert run.graph is not None
    draft.emit(
        RunExpanded(
            number=len(run.replans) + 1,
            capability_id=capability_id,
            workflow_type=capability_id,
            definition=safe_definition(Workflow(options=run.graph.options)),
            kept={},
            payload_ref=coordinate_of(draft.source.address),
            layers=0,
            tasks=0,
            mode=None if program.structure else "sandbox",
            grows=True if program.structure else None,
            reasons=None
            if program.structure
            else tuple(safe_text(reason) or "" for reason in program.reasons[:REASONS_SHOWN]),
            language=program.language,
        ),
        run,
    )
    begin(draft, run_id, program.tools)


def end_step(draft: Draft, item: Internal, outcome: CallEnded) -> None:
    """The program waits for calls, which begin, or has come to its end, and its run with it."""
    try:
        answer = _answer(outcome)
        expanded = None if answer.workflow is None else _expanded(draft, item.run_id, answer)
    except PMLError as error:
        _fail(draft, item, error, outcome.duration_ms)
        return
    if expanded is not None:
        end_with(draft, item, {"calls": len(expanded.definition["tasks"])}, None, outcome.duration_ms)
        draft.emit(expanded, draft.run(item.run_id))
        advance(draft, item.run_id)
        return
    end_with(draft, item, {"calls": 0}, None, outcome.duration_ms)
    discard_all(draft, item.run_id, reason="unused")
    run = draft.run(item.run_id)
    end_as(draft, item.run_id, RunCompleted(**summary(draft, run), **_came_to(answer)))


def give_up_step(draft: Draft, item: Internal) -> None:
    """Nobody answered in time."""
    give_up(draft, item, _NO_ANSWER)
    discard_all(draft, item.run_id, reason="unused")
    fail_run(draft, item.run_id, Unstepped(_NO_ANSWER))


def _fail(draft: Draft, item: Internal, error: PMLError, duration_ms: float) -> None:
    failure = CallError(code=error.code, type="UNKNOWN", message=error.message)
    end_with(draft, item, None, safe_error(failure), duration_ms)
    discard_all(draft, item.run_id, reason="unused")
    fail_run(draft, item.run_id, error)


def _answer(outcome: CallEnded) -> StepAnswer:
    """
    Raises:
        Unstepped: there is none.
        ProgramFailed: the program ended with an error.
    """
    if outcome.status != "ok" or outcome.result is None:
        raise Unstepped(error_of(outcome))
    try:
        answer = StepAnswer.model_validate(outcome.result.structured)
    except ValidationError:
        raise Unstepped(error_of(outcome)) from None
    if answer.error is not None:
        raise ProgramFailed(answer.error)
    return answer


def _expanded(draft: Draft, run_id: str, answer: StepAnswer) -> RunExpanded:
    """
    Raises:
        WorkflowInvalid: the program asks for a tool that nobody lists, or for more than a run may have.
    """
    run, workflow = draft.run(run_id), answer.workflow
    assert run.graph is not None
    assert workflow is not None
    check_calls(workflow, draft.catalog.servers, run.graph)
    after = _completed_last(run)
    tasks = workflow.tasks if answer.unfolded else tuple(_task(task, after) for task in workflow.tasks)
    number, wanted = len(run.replans) + 1, Workflow(tasks=tasks, decisions=workflow.decisions)
    return RunExpanded(
        number=number,
        capability_id=run.capability_id,
        workflow_type=run.workflow_type,
        definition=safe_definition(wanted),
        kept={},
        payload_ref=coordinate_of(draft.source.address),
        layers=len(grown(run.graph, wanted, number).layers),
        tasks=len(run.graph.nodes) + len(tasks),
        mode=None if answer.unfolded else "sandbox",
        grows=True if answer.unfolded else None,
    )


def _completed_last(run: Run) -> tuple[str, ...]:
    """What the next layer follows on; of what failed nothing depends, the program goes round it."""
    assert run.graph is not None
    last = run.graph.layers[-1] if run.graph.layers else ()
    completed = [name for name in last if run.task(name).status == "completed"]
    return tuple(completed[:DEPENDENCIES_SHOWN])


def _task(task: Task, after: tuple[str, ...]) -> Task:
    """Only what the program does not catch fails its run."""
    follows = task.depends_on or after
    return task.model_copy(update={"depends_on": follows, "safe_to_fail": True})


def _came_to(answer: StepAnswer) -> dict[str, Any]:
    if answer.value_error is not None:
        return {"result_error": sanitise_text(answer.value_error, ERROR_BYTES_MAX)}
    if answer.unfolded and answer.value is None:
        return {}
    return {"result": _safe_result(answer.value)}


def _safe_result(value: Any) -> Any:
    """Under a name of its own, as the result of a workflow is."""
    safe = sanitise({"result": value})
    return safe.get("result", safe) if isinstance(safe, dict) else safe
