"""Provides edges: DESIGN §6 and the acceptance criteria of spec story 10.3."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.capabilities.aliases import PAIRS, names_alike, same_name
from pml.processors.capabilities.coverage import (
    FieldMapping,
    candidates,
    compute_coverage,
    field_mapping,
    types_compatible,
    value_fits,
)

NAMES = st.sampled_from(sorted({name for pair in PAIRS for name in pair} | {"size", "colour"}))
FIELDS = st.frozensets(NAMES, max_size=5)


def schema(*required: str, **types: Any) -> dict[str, Any]:
    properties = {name: {"type": kind} if kind else {} for name, kind in types.items()}
    return {"type": "object", "properties": properties, "required": list(required)}


@pytest.mark.parametrize(
    ("outputs", "required", "optional", "coverage"),
    [
        ({"content"}, {"json"}, set(), "strict"),
        ({"json", "url"}, {"url", "body", "token"}, set(), "partial"),
        ({"size"}, {"url", "body"}, set(), None),
        ({"uri"}, {"body"}, {"url"}, "optional"),
        ({"uri"}, set(), {"url"}, "optional"),
        ({"uri"}, set(), {"body"}, None),
        (set(), set(), set(), None),
        ({"path", "text"}, {"path"}, {"text"}, "strict"),
    ],
)
def test_coverage(outputs: set[str], required: set[str], optional: set[str], coverage: str | None) -> None:
    assert compute_coverage(outputs, required, optional) == coverage


def test_reading_a_file_provides_what_parsing_needs() -> None:
    assert compute_coverage({"content"}, {"json"}) == "strict"


def test_parsed_json_provides_a_part_of_a_request() -> None:
    assert compute_coverage({"data"}, {"url", "body"}) is None, "data and body are not a pair"
    assert compute_coverage({"content"}, {"url", "body"}) == "partial"


def test_aliases_are_symmetric_and_not_transitive() -> None:
    assert same_name("path", "file_path")
    assert same_name("file_path", "path")
    assert not same_name("filepath", "file_path")
    assert not same_name("text", "json")


@given(one=NAMES, other=NAMES)
def test_comparing_names_does_not_depend_on_their_order(one: str, other: str) -> None:
    assert same_name(one, other) == same_name(other, one)
    assert same_name(one, one)


@given(outputs=FIELDS, more=FIELDS, required=FIELDS, optional=FIELDS)
def test_more_outputs_never_cover_less(
    outputs: frozenset[str], more: frozenset[str], required: frozenset[str], optional: frozenset[str]
) -> None:
    order = [None, "optional", "partial", "strict"]
    before = compute_coverage(outputs, required, optional)
    after = compute_coverage(outputs | more, required, optional)
    assert order.index(after) >= order.index(before)


@given(outputs=FIELDS, required=FIELDS, optional=FIELDS)
def test_coverage_says_what_it_means(
    outputs: frozenset[str], required: frozenset[str], optional: frozenset[str]
) -> None:
    filled = [any(same_name(given_, name) for given_ in outputs) for name in required]
    expected = "strict" if required and all(filled) else "partial" if any(filled) else None
    if expected is None and any(same_name(given_, name) for given_ in outputs for name in optional):
        expected = "optional"
    assert compute_coverage(outputs, required, optional) == expected


def test_a_mapping_names_every_pair_and_whether_its_types_agree() -> None:
    found = field_mapping(schema(content="string", size="integer"), schema(text="string", json="object"))
    assert found == (FieldMapping("content", "text", True), FieldMapping("content", "json", False))


@pytest.mark.parametrize(("given_", "wanted"), [(None, schema(text="string")), (schema(text="string"), None)])
def test_without_both_schemas_there_is_no_mapping(given_: Any, wanted: Any) -> None:
    assert field_mapping(given_, wanted) == ()


def test_a_field_of_the_very_name_comes_before_its_aliases() -> None:
    outputs = schema(content="string", text="string", body="string")
    assert candidates(outputs, schema(content="string"), "content") == ("content",)
    assert candidates(schema(text="string", body="string"), schema(content="string"), "content") == (
        "text",
        "body",
    )


def test_a_field_of_another_type_is_no_candidate() -> None:
    outputs = schema(text="array", body="string")
    assert candidates(outputs, schema(content="string"), "content") == ("body",)


@pytest.mark.parametrize(
    ("given_", "wanted", "fits"),
    [
        ("integer", "number", True),
        ("number", "integer", False),
        ("string", None, True),
        (None, "string", True),
        (["string", "null"], "string", False),
        ("string", ["string", "null"], True),
    ],
)
def test_types(given_: Any, wanted: Any, fits: bool) -> None:
    assert types_compatible({"type": given_} if given_ else {}, {"type": wanted} if wanted else None) is fits


@pytest.mark.parametrize(
    ("value", "wanted", "fits"),
    [
        ("a", "string", True),
        (1, "string", False),
        (True, "integer", False),
        (2.0, "integer", True),
        (2.5, "integer", False),
        (2.5, "number", True),
        (None, "null", True),
        ([], "array", True),
        ({}, "object", True),
        ({}, "array", False),
    ],
)
def test_values(value: Any, wanted: str, fits: bool) -> None:
    assert value_fits(value, {"type": wanted}) is fits
    assert value_fits(value, {})


def test_names_alike_are_all_that_mean_the_same_the_name_itself_first() -> None:
    every = {name for pair in PAIRS for name in pair}
    for name in (*every, "unheard"):
        assert names_alike(name)[0] == name
        assert set(names_alike(name)) == {other for other in (*every, name) if same_name(name, other)}
