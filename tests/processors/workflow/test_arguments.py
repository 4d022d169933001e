"""Spec story 12.2: from the definition of arguments to the values of one call."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.workflow.arguments import Resolved, Unresolved, Values, resolve, resolve_strictly
from pml.processors.workflow.fields import RecordedFields
from pml.schemas.workflow import Argument, Expression, ListOf, LiteralValue, ObjectOf, Parameter, Reference

NOTHING = Values(context={}, results={})


def reference(expression: str) -> Reference:
    return Reference(expression=expression)


def test_a_literal_is_itself() -> None:
    assert resolve_strictly({"path": LiteralValue(value="config.json")}, NOTHING) == Resolved(
        {"path": "config.json"}
    )


def test_a_reference_is_the_result_of_an_executed_task() -> None:
    values = Values({}, {"task_0": {"content": "file data"}})
    found = resolve_strictly({"input": reference("task_0.content")}, values)
    assert found == Resolved({"input": "file data"})


def test_a_parameter_comes_from_the_initial_context() -> None:
    found = resolve_strictly(
        {"filePath": Parameter(parameter_name="path")}, Values({"path": "/my/file.txt"}, {})
    )
    assert found == Resolved({"filePath": "/my/file.txt"})


MIXED = ObjectOf(
    fields={
        "text": reference("n1.content"),
        "tags": ListOf(items=(LiteralValue(value="a"), Parameter(parameter_name="tag"), reference("n2"))),
    }
)


def test_an_object_and_a_list_take_their_parts_from_everywhere() -> None:
    values = Values({"tag": "b"}, {"n1": {"content": "x"}, "n2": 3})

    found = resolve_strictly({"body": MIXED}, values)

    assert found == Resolved({"body": {"text": "x", "tags": ["a", "b", 3]}})


def test_an_object_of_which_a_part_is_missing_is_missing_as_a_whole() -> None:
    values = Values({"tag": "b"}, {"n1": {"content": "x"}})

    strictly = resolve_strictly({"body": MIXED}, values)
    optional = resolve({"body": MIXED, "n": LiteralValue(value=1)}, values, required={"n"})

    assert isinstance(strictly, Unresolved)
    assert "n2" in strictly.message
    assert optional == Resolved({"n": 1}, omitted=("body",))


def computed(code: str) -> Expression:
    return Expression(code=code)


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("n1.count + 1", 3),
        ("n1.title + '/' + args.name", "T/x"),
        ("[n1.count, n1.title]", [2, "T"]),
        ("n1.count > 1 and args.name == 'x'", True),
        ("n1.parts[0]", {"a": 1}),
        ("-n1.count", -2),
    ],
)
def test_an_argument_is_computed_from_results_and_the_context(code: str, value: Any) -> None:
    values = Values({"name": "x"}, {"n1": {"count": 2, "title": "T", "parts": [{"a": 1}]}})
    assert resolve_strictly({"x": computed(code)}, values) == Resolved({"x": value})


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("n1.title + 1", "a number is needed, not a text"),
        ("n1.nothing", "there is no 'nothing'"),
        ("n2.count", "n2 gave no result"),
        ("n1.count * 9007199254740992", "beyond what every language counts"),
        ("[n1.count * 9007199254740992]", "beyond what every language counts"),
    ],
)
def test_what_cannot_be_computed_for_certain_is_never_left_out(code: str, reason: str) -> None:
    """An optional argument that has no value is left out; one whose computation fails would have raised."""
    values = Values({}, {"n1": {"count": 2, "title": "T"}})
    given = {"x": computed(code)}
    for found in (resolve(given, values, required=()), resolve_strictly(given, values)):
        assert isinstance(found, Unresolved)
        assert reason in found.reasons["x"]


def test_a_computed_part_fails_the_whole_argument() -> None:
    part = ListOf(items=(reference("n1.absent"), computed("n1.nothing")))
    found = resolve({"x": part}, Values({}, {"n1": {}}), required=())
    assert isinstance(found, Unresolved)


def test_no_mapping_chooses_for_a_part_of_an_argument() -> None:
    values = Values({}, {"n1": {"content": "x"}}, RecordedFields({"body": "content", "": "content"}))

    found = resolve_strictly({"body": ListOf(items=(reference("n1"),))}, values)

    assert found == Resolved({"body": [{"content": "x"}]})


def test_a_reference_to_an_unexecuted_task_is_unresolvable() -> None:
    found = resolve_strictly({"input": reference("task_0.content"), "n": LiteralValue(value=1)}, NOTHING)
    assert found == Unresolved({"input": "task_0 gave no result"})


def test_a_parameter_that_was_not_given_is_unresolvable() -> None:
    found = resolve_strictly({"filePath": Parameter(parameter_name="path")}, NOTHING)
    assert found == Unresolved({"filePath": "the context has no 'path'"})


def test_null_is_a_value() -> None:
    values = Values({"p": None}, {"n1": {"x": None}})
    found = resolve_strictly({"a": Parameter(parameter_name="p"), "b": reference("n1.x")}, values)
    assert found == Resolved({"a": None, "b": None})


def test_a_real_call_leaves_out_what_is_optional_and_names_it() -> None:
    given = {"c": reference("n1.x"), "b": LiteralValue(value=2), "a": reference("n1.x")}
    assert resolve(given, NOTHING, required=["b"]) == Resolved({"b": 2}, omitted=("a", "c"))


def test_a_real_call_without_a_required_argument_is_an_error_with_all_reasons() -> None:
    found = resolve({"a": reference("n1.x"), "z": reference("n1.x")}, NOTHING, required=["a", "b"])
    assert found == Unresolved({"b": "is required by the tool and not given", "a": "n1 gave no result"})
    assert found.message == "b: is required by the tool and not given; a: n1 gave no result"


def test_what_a_tool_requires_and_nobody_gave_is_named_in_order() -> None:
    found = resolve({}, NOTHING, required=set("hgfedcba"))
    assert isinstance(found, Unresolved)
    assert list(found.reasons) == list("abcdefgh")


def test_a_field_that_is_there_is_taken_whatever_else_the_mapping_would_choose() -> None:
    """Only where the exact field is missing, or all of a result is named, is another one looked for."""
    values = Values({}, {"n1": {"text": "exact", "path": "mapped"}}, RecordedFields({"path": "path"}))
    expected = {"n1.text": "exact", "n1.missing": "mapped", "n1": "mapped"}
    for expression, value in expected.items():
        found = resolve_strictly({"path": reference(expression)}, values)
        assert isinstance(found, Resolved)
        assert (found.arguments, dict(found.mapped)) == (
            {"path": value},
            {"path": "path"} if value == "mapped" else {},
        )
    assert isinstance(resolve_strictly({"path": reference("n1.text.deep")}, values), Unresolved)


def test_without_a_schema_everything_written_down_is_required() -> None:
    assert isinstance(resolve({"a": reference("n1.x")}, NOTHING, required=None), Unresolved)


ARGUMENTS: st.SearchStrategy[dict[str, Argument]] = st.dictionaries(
    st.sampled_from("abcd"),
    st.one_of(
        st.builds(LiteralValue, value=st.one_of(st.none(), st.integers())),
        st.builds(reference, st.sampled_from(["n1", "n1.x", "n1.y", "n2", "n2|n1.x"])),
        st.sampled_from("pq").map(lambda name: Parameter(parameter_name=name)),
    ),
)


@given(
    arguments=ARGUMENTS,
    context=st.dictionaries(st.sampled_from("pq"), st.integers()),
    results=st.dictionaries(st.sampled_from(["n1", "n2"]), st.just({"x": 1})),
    required=st.sets(st.sampled_from("abcde")),
)
def test_both_modes_agree_where_everything_has_a_value(
    arguments: dict[str, Argument], context: dict[str, Any], results: dict[str, Any], required: set[str]
) -> None:
    values = Values(context, results)
    strictly, real = resolve_strictly(arguments, values), resolve(arguments, values, required)
    if isinstance(strictly, Resolved):
        assert strictly.arguments.keys() == arguments.keys()
        assert strictly.omitted == ()
        if required <= arguments.keys():
            assert real == strictly
    if isinstance(real, Resolved):
        assert required <= real.arguments.keys()
        assert real.arguments.keys() | set(real.omitted) == arguments.keys()
        assert isinstance(strictly, Unresolved) == bool(real.omitted)
    else:
        assert real.reasons.keys() <= required


def test_what_is_absent_is_named_in_order() -> None:
    found = resolve({}, NOTHING, required=[f"x{number}" for number in range(9, -1, -1)])
    assert isinstance(found, Unresolved)
    assert list(found.reasons) == [f"x{number}" for number in range(10)]


def test_a_result_that_is_no_object_is_taken_whole_and_one_without_the_field_as_it_is() -> None:
    """A field is recorded of an object that has it; whatever else comes, its argument is left as written."""
    recorded = RecordedFields({"path": "path"})
    for result in ("the path", ["path"], {"text": "a"}):
        found = resolve_strictly({"path": reference("n1")}, Values({}, {"n1": result}, recorded))
        assert found == Resolved({"path": result})
