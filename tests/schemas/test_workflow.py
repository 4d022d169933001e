"""The definition of a workflow as people write it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pml.schemas.workflow import (
    ARGUMENT_DEPTH_MAX,
    ListOf,
    LiteralValue,
    ObjectOf,
    Parameter,
    Reference,
    Task,
    Workflow,
    depth_of,
    leaves,
)


def argument(value: Any) -> Any:
    return Task.model_validate({"id": "n1", "tool": "a:b", "arguments": {"x": value}}).arguments["x"]


@pytest.mark.parametrize(
    "value",
    [
        1,
        None,
        "text",
        "n1.content",
        [1],
        {},
        {"a": 1},
        {"type": "file"},
        {"type": 7},
        # Only the exact shape is an argument; anything near it is somebody's data.
        {"type": "reference"},
        {"type": "reference", "expression": "n1", "more": 1},
        {"type": "parameter", "name": "p"},
        {"type": "literal", "value": 1, "unit": "ms"},
        {"type": "object", "fields": {"a": 1}},
        {"type": "array", "items": [1]},
        {"type": "object_of", "fields": {}, "title": "x"},
    ],
)
def test_a_bare_value_is_a_literal(value: Any) -> None:
    assert argument(value) == LiteralValue(value=value)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({"type": "literal", "value": {"type": "reference", "expression": "n1"}}, None),
        ({"type": "literal"}, LiteralValue(value=None)),
        ({"type": "reference", "expression": "n1.x"}, Reference(expression="n1.x")),
        ({"type": "parameter", "parameter_name": "p"}, Parameter(parameter_name="p")),
        ({"type": "parameter", "parameterName": "p"}, Parameter(parameter_name="p")),
        (
            {"type": "object_of", "fields": {"a": 1, "b": {"type": "reference", "expression": "n1"}}},
            ObjectOf(fields={"a": LiteralValue(value=1), "b": Reference(expression="n1")}),
        ),
        (
            {"type": "list_of", "items": ["n1", {"type": "parameter", "parameter_name": "p"}]},
            ListOf(items=(LiteralValue(value="n1"), Parameter(parameter_name="p"))),
        ),
    ],
)
def test_an_argument_has_exactly_its_shape(value: dict[str, Any], found: Any) -> None:
    assert argument(value) == (found or LiteralValue(value=value["value"]))


@pytest.mark.parametrize(
    "value",
    [
        {"type": "reference", "expression": ""},
        {"type": "reference", "expression": 7},
        {"type": "object_of", "fields": [1]},
        {"type": "list_of", "items": "abc"},
        {"type": "list_of", "items": [{"type": "reference", "expression": ""}]},
    ],
)
def test_an_argument_of_the_right_shape_and_the_wrong_content_is_a_mistake(value: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        argument(value)


def nested(depth: int) -> Any:
    value: Any = {"type": "reference", "expression": "n1.x"}
    for _ in range(depth):
        value = {"type": "list_of", "items": [{"type": "object_of", "fields": {"a": value}}, 1]}
    return value


@given(depth=st.integers(0, ARGUMENT_DEPTH_MAX // 2))
def test_everything_in_an_argument_is_found(depth: int) -> None:
    found = list(leaves(argument(nested(depth))))

    assert found == [Reference(expression="n1.x"), *[LiteralValue(value=1)] * depth]
    assert depth_of(argument(nested(depth))) == 2 * depth


@pytest.mark.parametrize("depth", [ARGUMENT_DEPTH_MAX // 2 + 1, 50, 120, 1_000])
def test_an_argument_that_is_nested_too_deeply_is_refused(depth: int) -> None:
    with pytest.raises(ValidationError):
        argument(nested(depth))


def test_yaml_booleans_mean_what_was_written() -> None:
    task = Task.model_validate({"id": "n1", "tool": "a:b", "condition": {"node": "d", "outcome": True}})
    assert task.condition[0].outcome == "true"
    for value, mode in ((True, "on"), (False, "off"), ("on", "on")):
        assert Workflow.model_validate({"options": {"speculation": value}}).options.speculation == mode


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "needs either `tool` or `capability`"),
        ({"tool": "a:b", "capability": "c"}, "needs either `tool` or `capability`"),
        ({"tool": "ab"}, "is written server:name"),
        ({"tool": ":b"}, "is written server:name"),
        ({"tool": "a:"}, "is written server:name"),
        ({"tool": "a:b", "id": "n-1"}, "should match pattern"),
        ({"tool": "a:b", "id": "1n"}, "should match pattern"),
        ({"tool": "a:b", "id": "n" * 65}, "should match pattern"),
        ({"tool": "a:b", "timeout_s": 0}, "greater than 0"),
        ({"tool": "a:b", "timeout_s": 86_401}, "less than or equal to 86400"),
        ({"tool": "a:b", "depends": []}, "Extra inputs"),
        ({"tool": "a:b", "depends_on": "n1"}, "valid tuple"),
    ],
)
def test_a_wrong_task_is_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Task.model_validate({"id": "n1", **fields})


@pytest.mark.parametrize(
    "fields",
    [
        {"version": 2},
        {"options": {"timeout_s": 0}},
        {"options": {"speculation": "maybe"}},
        {"decisions": [{"id": "d", "expression": ""}]},
        {"decisions": [{"id": "d", "expression": "x" * 2_001}]},
        {"name": "x" * 201},
        {"intent": "x" * 10_001},
    ],
)
def test_a_wrong_workflow_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Workflow.model_validate(fields)


@pytest.mark.parametrize(
    ("fields", "name"),
    [({"workflow_type": "t", "name": "n"}, "t"), ({"name": "n"}, "n"), ({}, "default")],
)
def test_a_workflow_has_a_type(fields: dict[str, Any], name: str) -> None:
    assert Workflow.model_validate(fields).type_name == name


def test_what_was_read_is_written_so_that_it_is_read_as_the_same() -> None:
    workflow = Workflow.model_validate(
        {
            "context": {"a": None},
            "tasks": [
                {
                    "id": "n1",
                    "tool": "a:b",
                    "arguments": {
                        "null": None,
                        "escaped": {"type": "literal", "value": {"type": "parameter", "parameter_name": "p"}},
                        "parameter": {"type": "parameter", "parameter_name": "p"},
                    },
                }
            ],
        }
    )
    assert Workflow.model_validate(workflow.model_dump(exclude_none=True)) == workflow
    assert Workflow.model_validate_json(workflow.model_dump_json()) == workflow
