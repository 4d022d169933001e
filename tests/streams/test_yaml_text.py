"""YAML as people write it: what is none is told with its place, whatever its reader makes of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.streams import yaml_text
from pml.streams.yaml_text import NotYAML, read_json_or_yaml, read_yaml

TAGS = ("!!int", "!!bool", "!!float", "!!binary", "!!timestamp", "!!set", "!!omap", "!!pairs", "!!map", "!!x")
PARTS = st.sampled_from(
    [*TAGS, *"ab01=<~-:?&*[]{},|>'\"#%@ \n", "&a ", "*a", ": ", "\n  ", "2026-13-45", ".inf"]
)


def test_yaml_and_json_are_read() -> None:
    assert read_yaml("a: [1, {b: c}]") == read_yaml('{"a": [1, {"b": "c"}]}') == {"a": [1, {"b": "c"}]}
    assert read_yaml("") is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'{"a": "\ud83d\ude00"}', {"a": "\U0001f600"}),
        ('{"a": 1e5}', {"a": 1e5}),
        ('{"on": 123456789012345678901}', {"on": 123456789012345678901}),
        ('{"a": 1e5, "b": 1e999, "c": -Infinity}', {"a": 1e5, "b": inf, "c": -inf}),
        ("a: 1e5", {"a": "1e5"}),
    ],
)
def test_json_is_read_as_json_where_that_is_asked_for(text: str, value: Any) -> None:
    assert read_json_or_yaml(text) == value


def test_yaml_alone_takes_numbers_of_json_for_words_as_ever() -> None:
    assert read_yaml('{"a": 1e5}') == {"a": "1e5"}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        *(("a: [\n", (2, 1)), ("a: b: c", (1, 5)), ("a: !secret hunter2", (1, 4)), ("{[a]: b}", (1, 2))),
        *(("a: *hunter2", (1, 4)), ("a: !hunter2 b", (1, 4)), ("a: &hunter2 b\nc: &hunter2 b", (2, 4))),
        *(("a: !hunter2'! b", (1, 12)), ("a: !hunter2!b c", (1, 4)), ("\t", (1, 1))),
        (f"a: 0x{'f' * 5_000}", (1, 4)),
    ],
)
def test_where_it_is_wrong_is_told(text: str, place: tuple[int, int]) -> None:
    with pytest.raises(NotYAML) as error:
        read_yaml(text)
    assert error.value.place == place
    assert error.value.problem
    assert "hunter2" not in f"{error.value} {error.value.problem}"


def test_what_is_wrong_is_still_told() -> None:
    for text, told in (
        ("a:\n\t- b", r"found character '\t' that cannot start any token"),
        ("a: !foo{}", "expected ' ', but found '{'"),
        ("%YAML 1.1x\n---\na", "expected a digit or ' ', but found 'x'"),
        ("a: [b", "expected ',' or ']', but got '<stream end>'"),
        ("a: *b", "found undefined alias"),
        ("a: !b c", "could not determine a constructor for the tag"),
        ("a: !<%5Cb> c", "could not determine a constructor for the tag"),
        ("a: !b!c d", "found undefined tag handle"),
        ("%TAG !b! x\n%TAG !b! x\n--- a", "duplicate tag handle"),
    ):
        with pytest.raises(NotYAML) as error:
            read_yaml(text)
        assert error.value.problem == told


@pytest.mark.parametrize(
    "number",
    ["1" + ":1" * 100_000, "1" + ":1" * 100_000 + ".5", f"!!int {{=: 1{':1' * 100_000}}}", "-" + "7" * 401],
    ids=["minutes", "minutes and a half", "minutes in a mapping", "digits"],
)
def test_a_number_that_takes_long_to_read_is_told(number: str) -> None:
    with pytest.raises(NotYAML) as error:
        read_yaml(f"a: {number}")
    assert error.value.problem == "a number has more than 400 letters"


@pytest.mark.parametrize(
    "value",
    [
        *("2026-13-45", '!!int ""', "!!bool x", "!!timestamp x", "!!timestamp {=: x}", "!!float x"),
        *("9" * 5_000, "!!binary ü"),
    ],
)
def test_a_value_that_cannot_be_is_told(value: str) -> None:
    with pytest.raises(NotYAML) as error:
        read_yaml(f"tasks: {value}")
    assert error.value.problem


DEEP = {
    "lists": "[" * 300 + "]" * 300,
    "lists without end": "[" * 5_000,
    "mappings without end": "{a: " * 5_000,
    "itself": "&a [*a]",
    "itself in a mapping": "&a {b: *a}",
    "itself in pairs": "&a !!pairs [b: *a]",
    "itself in order": "&a !!omap [b: *a]",
}


@pytest.mark.parametrize("deep", DEEP.values(), ids=DEEP)
def test_what_is_nested_too_deeply_is_told(deep: str) -> None:
    with pytest.raises(NotYAML) as error:
        read_yaml(deep)
    assert error.value.problem == "it is nested deeper than 200 levels"
    assert read_yaml("[" * 200 + "]" * 200)


def lines(first: str, each: Callable[[str], str]) -> str:
    """Lines of which each names the one before ten times."""
    told = [f"a0: &a0 {first}"]
    told += [f"a{number}: &a{number} {each(f'*a{number - 1}')}" for number in range(1, 9)]
    return "\n".join(told)


KEYS = ", ".join(f"k{number}: 1" for number in range(500))
MANY = {
    "lists": lines("[1]", lambda before: f"[{', '.join([before] * 10)}]"),
    "mappings": lines(
        "{b: c}", lambda before: f"{{{', '.join(f'{key}: {before}' for key in 'abcdefghij')}}}"
    ),
    "pairs": lines("!!pairs [b: c]", lambda before: f"!!pairs [{', '.join([f'b: {before}'] * 10)}]"),
    "merged": lines("{b: c}", lambda before: f"{{<<: [{', '.join([before] * 10)}]}}"),
    "merged often": f"a: &a {{{KEYS}}}\nb: {{<<: [{', '.join(['*a'] * 500)}]}}",
    "merged everywhere": "\n".join(
        [f"a: &a {{{KEYS}}}", *(f"b{number}: {{<<: *a}}" for number in range(500))]
    ),
    "letters": f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 1_000)}]",
    "bytes": f"a: &a !!binary {'eHh4' * 30_000}\nb: [{', '.join(['*a'] * 1_000)}]",
    "itself, often": f"&a [{', '.join(['*a'] * 10_000)}]",
}


@pytest.mark.parametrize("text", MANY.values(), ids=MANY)
def test_what_stands_for_more_than_there_is_room_for_is_told(text: str) -> None:
    with pytest.raises(NotYAML) as error:
        read_yaml(text)
    assert "values" in error.value.problem


def test_as_much_as_may_be_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list, three values in it and one more in the mapping, with its key."""
    monkeypatch.setattr(yaml_text, "VALUES_MAX", 6)
    assert read_yaml("[a, {b: &c d}, *c]") == ["a", {"b": "d"}, "d"]
    with pytest.raises(NotYAML):
        read_yaml("[a, {b: &c d}, *c, e]")


def test_mappings_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one has by itself does not count."""
    monkeypatch.setattr(yaml_text, "MERGED_MAX", 5)
    assert read_yaml("a: &a {x: 1, y: 1}\nb: {<<: *a, y: 2}")["b"] == {"x": 1, "y": 2}
    assert read_yaml("a: &a {x: 1}\nb: &b {<<: *a, y: 2}\nc: {<<: [*b, *a]}")["c"] == {"x": 1, "y": 2}
    assert len(read_yaml("{a: 1, b: 1, c: 1, d: 1, e: 1, f: 1}")) == 6
    with pytest.raises(NotYAML):
        read_yaml("a: &a {x: 1, y: 1}\nb: {<<: [*a, *a, *a]}")
    for wrong in ("{<<: 1}", "{<<: [1]}"):
        with pytest.raises(NotYAML, match="no YAML") as error:
            read_yaml(wrong)
        assert "merging" in error.value.problem


@given(st.lists(PARTS, max_size=12).map("".join))
def test_any_text_is_read_or_told(text: str) -> None:
    for read in (read_yaml, read_json_or_yaml):
        with suppress(NotYAML):
            read(text)
