"""What of a session names a value for an input, and whether argument sources agree."""

from __future__ import annotations

import pytest

from pml.processors.learning.argument_candidates import candidates
from pml.processors.learning.argument_sources import ArgumentSources
from pml.processors.learning.holdings import Holdings
from pml.processors.learning.parameters import Parameter
from pml.processors.learning.scene import Past, scene, taken_apart

LISTED = Past("files:list_dir", {"path": "docs"}, {"first": "docs/new.md", "size": 7})
MUCH = Past("files:stat", {}, {f"field_{number}": number for number in range(9)})


def wanted(name: str, kind: str = "string", **told: object) -> Parameter:
    """A required input."""
    fields = {"enum": (), "default": None, "constants": ()} | told
    return Parameter("a:x", name, kind, True, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("past", "text", "name"),
    [
        ([LISTED], "", "path"),
        ([LISTED], "", "file_path"),
        ([LISTED], "", "first"),
        ([], "read 'a.md'", "anything"),
    ],
)
def test_a_value_that_is_called_alike_or_stands_in_the_text_is_at_hand(
    past: list[Past], text: str, name: str
) -> None:
    assert Holdings(past, text).has(wanted(name))


@pytest.mark.parametrize(
    ("past", "text", "name", "kind"),
    [
        ([], "", "path", "string"),
        ([MUCH], "", "path", "string"),
        ([LISTED], "", "path", "boolean"),
        ([], "read a file", "lines", "integer"),
        ([Past("files:list_dir", {}, None)], "", "first", "string"),
    ],
)
def test_what_nothing_names_is_not(past: list[Past], text: str, name: str, kind: str) -> None:
    assert not Holdings(past, text).has(wanted(name, kind))


@pytest.mark.parametrize("told", [{"default": b'"a"'}, {"enum": (b'"a"',)}, {"constants": (b'"a"',)}])
def test_defaults_habits_and_what_a_schema_allows_are_at_hand(told: dict[str, object]) -> None:
    assert Holdings([], "").has(wanted("mode", **told))


@pytest.mark.parametrize("text", ["", "read a file", "read 'a.md', 3 lines of it"])
@pytest.mark.parametrize("kind", ["string", "array", "integer", "number", "boolean", "object", "any"])
@pytest.mark.parametrize("past", [[], [LISTED], [MUCH], [LISTED, MUCH]])
def test_it_agrees_with_the_list_of_all_that_may_be_meant(past: list[Past], kind: str, text: str) -> None:
    before = scene([taken_apart(each) for each in past], text)
    for name in ("path", "first", "unheard", "field_1"):
        asked = wanted(name, kind)
        assert Holdings(past, text).has(asked) is bool(candidates(before, asked))


def test_where_an_input_is_not_at_hand_no_source_guesses_arguments() -> None:
    schemas = {"shop:get": {"properties": {"item_id": {"type": "integer"}}, "required": ["item_id"]}}
    sessions = [
        [Past("shop:search", {}, {"items": [{"id": number}]}), Past("shop:get", {"item_id": number}, None)]
        for number in range(12)
    ]
    sources = ArgumentSources.fit(sessions, [["", ""]] * 12, schemas)
    needed = sources.known.parameters("shop:get")[0]
    before: list[tuple[list[Past], bool]] = [
        ([Past("shop:search", {}, {"items": [{"id": 77}]})], True),
        ([Past("shop:search", {}, {"items": []})], False),
        ([], False),
    ]
    for past, there in before:
        assert Holdings(past, "").has(needed) is there
        assert bool(sources.guesses("shop:get", past, "")) is there
