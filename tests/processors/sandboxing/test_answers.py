"""What a program says becomes tasks, and what became of them is told to it again."""

from __future__ import annotations

from typing import Any

import pytest

from pml.processors.sandboxing.answers import calls_of, results_of, step_answer
from pml.schemas.catalog import Capability
from pml.schemas.errors import WorkflowInvalid
from pml.schemas.stepping import StepAnswer
from pml.schemas.structure import StructureParameter
from pml.schemas.workflow import Condition, Decision, Parameter, Reference, Task

EITHER = Capability(
    tenant="local",
    name="either",
    capability_id="cap_1",
    parameters=(StructureParameter(name="path"),),
    tasks=(
        Task(id="n1", tool="s:read", arguments={"path": Parameter(parameter_name="path")}),
        Task(id="n2", tool="s:a", condition=(Condition(node="d1", outcome="true"),)),
        Task(id="n3", tool="s:b", condition=(Condition(node="d1", outcome="false"),)),
    ),
    decisions=(Decision(id="d1", expression="n1.size > 2"),),
    result=Reference(expression="n2.x|n3.x"),
)
SILENT = Capability(tenant="local", name="silent", capability_id="cap_2", tasks=(Task(id="n1", tool="s:a"),))
FIND = {"either": EITHER, "silent": SILENT}.get
CALLS: list[dict[str, Any]] = [
    {"capability": "either", "arguments": {"path": "a"}},
    {"tool": "s:read", "arguments": {"path": "b"}},
    {"capability": "silent", "arguments": {}},
]
SKIPPED = {"error": {"code": "NOT_DONE", "type": "UNKNOWN", "message": "the call did not happen"}}
BROKEN = {"error": {"code": "TOOL_ERROR", "type": "UNKNOWN", "message": "it is broken"}}


@pytest.fixture
def answer() -> StepAnswer:
    return step_answer({"calls": CALLS}, 4, FIND)


def ids(answer: StepAnswer) -> list[str]:
    assert answer.workflow is not None
    return [task.id for task in answer.workflow.tasks]


def test_calls_become_tasks_in_the_order_of_the_program(answer: StepAnswer) -> None:
    assert ids(answer) == ["c5__n1", "c5__n2", "c5__n3", "n6", "c7__n1"]
    assert answer.workflow is not None
    assert [item.id for item in answer.workflow.decisions] == ["c5__d1"]


def test_the_calls_are_known_again(answer: StepAnswer) -> None:
    assert calls_of(answer) == CALLS
    assert calls_of(StepAnswer.model_validate_json(answer.model_dump_json())) == CALLS


def test_a_capability_comes_to_its_value_and_one_without_to_nothing(answer: StepAnswer) -> None:
    given = [{"value": {"size": 1}}, SKIPPED, {"value": {"x": "no"}}, {"value": "b"}, {"value": {"y": 1}}]
    assert results_of(answer, given) == [{"value": "no"}, {"value": "b"}, {"value": None}]


def test_the_first_task_that_failed_is_the_error_of_its_call(answer: StepAnswer) -> None:
    given = [{"value": {"size": 1}}, SKIPPED, BROKEN, {"value": "b"}, {"value": {"y": 1}}]
    assert results_of(answer, given) == [BROKEN, {"value": "b"}, {"value": None}]


def test_a_value_that_is_not_there_is_an_error_of_the_call(answer: StepAnswer) -> None:
    given = [{"value": {"size": 1}}, SKIPPED, {"value": {}}, {"value": "b"}, {"value": {"y": 1}}]
    (first, *_) = results_of(answer, given)
    assert first["error"]["code"] == "UNRESOLVED"
    assert first["error"]["message"].startswith("either comes to no value: ")


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ({"capability": "nobody", "arguments": {}}, "UNKNOWN_CAPABILITY"),
        ({"capability": "either", "arguments": {}}, "CAPABILITY_ARGUMENT"),
        ({"capability": "silent", "arguments": {"x": 1}}, "CAPABILITY_ARGUMENT"),
    ],
)
def test_a_capability_that_cannot_be_called_so_is_refused(call: dict[str, Any], code: str) -> None:
    with pytest.raises(WorkflowInvalid) as found:
        step_answer({"calls": [call]}, 0, FIND)
    assert found.value.code == code


def test_an_end_has_no_tasks() -> None:
    assert step_answer({"value": 3}, 7, FIND) == StepAnswer(value=3)
