"""What the next step of a program that is no DAG follows from; the state has all of it (ADR 14)."""

from __future__ import annotations

from pml.processors.workflow.folding import coordinate_of
from pml.processors.workflow.state import Run, TaskState
from pml.schemas.stepping import Given, GivenError, StepRequest, StepTaken

_NOT_DONE = GivenError(code="NOT_DONE", message="the call did not happen")


def step_request(run: Run) -> StepRequest:
    """Everything that the next step of a program follows from."""
    assert run.sandbox is not None
    assert run.graph is not None
    given: dict[int, list[Given]] = {number: [] for number in range(2, len(run.replans) + 1)}
    for node in run.graph.nodes.values():
        given[node.plan].append(_given(run.task(node.id)))
    taken = (
        StepTaken(answer=coordinate_of(run.written_at(number)), results=tuple(results))
        for number, results in given.items()
    )
    return StepRequest(
        start=coordinate_of(run.payload), program=coordinate_of(run.written_at(1)), taken=tuple(taken)
    )


def _given(task: TaskState) -> Given:
    if task.result is not None:
        return Given(result=coordinate_of(task.result))
    if task.error is None:
        return Given(error=_NOT_DONE)
    code, kind, message = task.error
    return Given(error=GivenError(code=code, type=kind, message=message))
