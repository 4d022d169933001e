"""Normal forms: stable, and clear about what is broken."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from pml.deploy.examples.formats import DEPTH_MAX, TEXT_MAX_BYTES, Syntax, kind, parse_json, render

numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | st.text(st.characters(codec="utf-8"), max_size=20)
values: st.SearchStrategy[JsonValue] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
)
containers = values.filter(lambda value: isinstance(value, (list, dict)))
cells = st.text(st.characters(codec="utf-8"), max_size=12)
records = st.lists(st.dictionaries(st.sampled_from(["a", "b", "c|d"]), cells, min_size=1), min_size=1)


@settings(deadline=None)
@given(containers)
def test_json_keeps_the_value_and_is_stable(value: JsonValue) -> None:
    text = render(value, "json")
    assert json.loads(text) == value
    assert render(text, "json") == text


@settings(deadline=None)
@given(containers)
def test_yaml_keeps_the_value_and_is_stable(value: JsonValue) -> None:
    text = render(value, "yaml")
    assert yaml.safe_load(text) == value
    assert render(text, "yaml") == text


@settings(deadline=None)
@given(records)
def test_a_table_has_a_row_a_record_and_is_stable(rows: list[dict[str, JsonValue]]) -> None:
    text = render([*rows], "markdown_table")
    lines = text.splitlines()
    assert len(lines) == len(rows) + 2
    assert len({len(line) for line in lines}) == 1
    assert render(text, "markdown_table") == text


def test_keys_are_sorted_on_request() -> None:
    assert render({"b": 1, "a": 2}, "json", sort_keys=True) == '{\n  "a": 2,\n  "b": 1\n}\n'
    assert render({"b": 1, "a": 2}, "yaml", sort_keys=True) == "a: 2\nb: 1\n"
    assert render({"b": 1, "a": 2}, "markdown_table", sort_keys=True).startswith("| a   | b   |\n")


def test_a_loose_table_is_aligned() -> None:
    assert render("|a|long|\n|:-|--|\n|1|x\\|y|", "markdown_table") == (
        "| a   | long |\n| --- | ---- |\n| 1   | x\\|y |\n"
    )


@pytest.mark.parametrize(
    ("syntax", "data", "says"),
    [
        ("json", '{"a": 1,}', "line 1 column"),
        ("json", '{"a": NaN}', "NaN is no JSON number"),
        ("json", "[" * 100_000, "nested deeper"),
        ("yaml", "a: [1", "Invalid YAML"),
        ("yaml", "!!python/object/apply:os.getcwd []", "Invalid YAML"),
        ("markdown_table", "a | b", "header row"),
        ("markdown_table", "|a|b|\n|-|-|\n|1|", "needs 2 cells"),
        ("markdown_table", [1], "list of objects"),
        ("markdown_table", [{f"c{n}": n for n in range(51)}], "at most 50 columns"),
        ("markdown_table", [{"a": "x" * 10_000}] * 200, "larger than"),
        ("json", "x" * (TEXT_MAX_BYTES + 1), "larger than"),
        ("yaml", "x" * (TEXT_MAX_BYTES + 1), "larger than"),
    ],
)
def test_what_is_broken_or_too_large_is_said(syntax: Syntax, data: JsonValue, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        render(data, syntax)


def test_depth_is_bounded_exactly() -> None:
    assert parse_json("[" * (DEPTH_MAX - 1) + "1" + "]" * (DEPTH_MAX - 1))
    with pytest.raises(ValueError, match="nested deeper"):
        parse_json("[" * DEPTH_MAX + "1" + "]" * DEPTH_MAX)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "null"),
        (True, "boolean"),
        (1, "number"),
        (1.5, "number"),
        ("", "string"),
        ([], "array"),
        ({}, "object"),
    ],
)
def test_kinds_are_those_of_json(value: JsonValue, expected: str) -> None:
    assert kind(value) == expected
