"""What may be an argument is found in results and texts: against plain twins that look at everything."""

from __future__ import annotations

import math
from itertools import combinations as pairs
from itertools import product
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.processors.learning.argument_candidates import LEFT_OUT, candidates, related
from pml.processors.learning.argument_combining import LEAST_SHARE, combinations
from pml.processors.learning.argument_rates import START, STRENGTH, cross_fitted
from pml.processors.learning.argument_spans import mentioned, spans
from pml.processors.learning.argument_values import NODES_MOST, leaves, spelled
from pml.processors.learning.parameters import Parameter, declared
from pml.processors.learning.partial_json import read_json
from pml.processors.learning.scene import HISTORY_MOST, Past, scene, taken_apart

few = settings(max_examples=25, derandomize=True, deadline=None)
NAMES = st.sampled_from(["id", "user_id", "path", "items", "name"])
SCALARS = st.booleans() | st.integers(-9, 9) | st.sampled_from(["ada", "7", "docs/a.md", "x y"])
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(NAMES, JSON, max_size=4)
PIECES = {
    "quoted": "'some words'",
    "url": "https://example.org/a?b=1",
    "email": "ada@example.org",
    "date": "2026-11-23",
    "path": "docs/notes.md",
    "number": "42.5",
    "identifier": "ORD_17",
    "tag": "#prod",
}


def parameter(name: str = "user_id", kind: str = "any", **fields: Any) -> Parameter:
    given = {"required": True, "enum": (), "default": None, "constants": ()}
    return Parameter(tool="a:get", name=name, type=kind, **(given | fields))


def everything(value: Any, pattern: str = "") -> list[tuple[str, Any]]:
    """The plain twin of `leaves`: every path by recursion."""
    found = [(pattern, value)] if pattern else []
    if isinstance(value, dict):
        for name, inner in value.items():
            found += everything(inner, f"{pattern}.{name}".lstrip("."))
    if isinstance(value, list):
        for inner in value:
            found += everything(inner, f"{pattern}[]")
    return found


@few
@given(OBJECTS)
def test_leaves_are_all_fields_and_items(value: dict[str, Any]) -> None:
    found = sorted((leaf.pattern, leaf.spelling) for leaf in leaves(value))
    assert found == sorted((pattern, spelled(inner)) for pattern, inner in everything(value))
    assert [leaf.pattern.count(".") for leaf in leaves(value)][:1] in ([], [0])


@few
@given(OBJECTS)
def test_an_mcp_result_is_looked_at_as_its_fields_and_text_that_is_json_into_it(
    value: dict[str, Any],
) -> None:
    result = {"content": [], "structured": value}
    assert {leaf.pattern for leaf in leaves(value)} <= {leaf.pattern for leaf in leaves(result)}
    text = [{"type": "text", "text": orjson.dumps(value).decode()}]
    inside = {leaf.pattern.removeprefix("content[].text.") for leaf in leaves({"content": text})}
    assert {leaf.pattern for leaf in leaves(value)} <= inside


@few
@given(OBJECTS, st.integers(0, 200))
def test_json_that_was_cut_off_says_what_is_whole_and_nothing_else(value: dict[str, Any], cut: int) -> None:
    written = orjson.dumps(value).decode()
    found = read_json(written[:cut])
    allowed = {(pattern, spelled(inner)) for pattern, inner in everything(value)}
    for pattern, inner in everything(found):
        if not isinstance(inner, (dict, list)):
            assert (pattern, spelled(inner)) in allowed
    assert read_json(written) == value


def test_much_is_bounded() -> None:
    assert len(leaves({str(number): number for number in range(10_000)})) <= NODES_MOST
    assert leaves({"text": "x" * 100_000}) == []
    past = [taken_apart(Past("a:b", {"id": number}, None)) for number in range(50)]
    assert len(scene(past, "").past) == HISTORY_MOST
    much = "docs/a.md 17 #x 1+2 two on May 1st, 2024 at 9 am " * 5_000
    assert all(len(each) <= 24 for each in spans(much).values())


@few
@given(st.lists(st.sampled_from(sorted(PIECES)), max_size=6))
def test_pieces_that_were_planted_are_found_in_their_order(kinds: list[str]) -> None:
    text = "please ".join(f"take {PIECES[kind]} " for kind in kinds)
    found = spans(text)
    for kind, piece_of in PIECES.items():
        planted = [piece.text for piece in found[kind] if piece.text == piece_of.strip("'")]
        assert planted == [piece_of.strip("'")] * kinds.count(kind)
        assert all(text[piece.start : piece.end] == piece.text for piece in found[kind])


@few
@given(
    st.lists(st.tuples(OBJECTS, OBJECTS), max_size=3), st.sampled_from(["any", "string", "integer", "array"])
)
def test_every_candidate_of_a_result_is_there_and_no_field_called_alike_is_missed(
    elements: list[tuple[dict[str, Any], dict[str, Any]]], kind: str
) -> None:
    past = [Past(f"a:t{place}", arguments, result) for place, (arguments, result) in enumerate(elements)]
    wanted = parameter(kind=kind)
    offered = candidates(scene([taken_apart(each) for each in past], "take '7'"), wanted)
    held = {
        (f"{family} {each.name} {pattern}", spelled(inner))
        for each in past
        for family, value in (("argument", each.arguments), ("result", each.result))
        for pattern, inner in everything(value)
    }
    loosely = {(source, (value or b"").strip(b'[]"')) for source, value in held}
    for each in offered:
        if each.general.startswith(("argument", "result")):
            assert any(each.specific.startswith(source) for source, _ in held)
            assert each.value.strip(b'[]"') in {value for _, value in loosely} | {each.value}
        if kind == "integer":
            assert type(orjson.loads(each.value)) is int
    if kind == "any" and past:
        alike = [value for pattern, value in everything(past[-1].result) if pattern == "user_id"]
        assert {spelled(value) for value in alike} <= {each.value for each in offered}


def test_names_are_related_by_word_alias_and_owner() -> None:
    assert related("user_id", "userId", "shop get") == "same"
    assert related("path", "file_path", "files list") == "alias"
    assert related("user_id", "id", "shop get user") == "owned"
    assert related("id", "geo_id", "maps find") == "part"
    assert related("user_id", "order_id", "shop get") == "kin"
    assert related("query", "colour", "shop get") == "other"


def test_optional_arguments_may_be_left_out_and_habits_that_the_text_names_count_apart() -> None:
    before = scene([], "a round trip in business class")
    wanted = parameter("cabin", required=False, constants=(b'"business"', b'"economy"'))
    found = {each.value: each.general for each in candidates(before, wanted)}
    assert (found[LEFT_OUT], found[b'"business"']) == (
        "left out, none required",
        "constant in the text",
    )
    assert found[b'"economy"'] == "constant"
    assert mentioned("Round Trip", before.lowered)
    assert not mentioned("usines", before.lowered)


def plain_rate(rows: list[tuple[list[int], bool, int]], names: list[int], fold: int) -> float:
    """The twin of `cross_fitted`: counts again, for one candidate, over all of the other folds."""
    rate = START
    for name in names:
        others = [
            right for numbers, right, other in rows for each in numbers if each == name and other != fold
        ]
        rate = (sum(others) + STRENGTH * rate) / (len(others) + STRENGTH)
    return rate


@few
@given(
    st.lists(
        st.tuples(st.lists(st.integers(0, 4), min_size=6, max_size=6), st.booleans(), st.integers(0, 2)),
        min_size=1,
        max_size=12,
    )
)
def test_cross_fitted_rates_are_those_of_the_other_folds(rows: list[tuple[list[int], bool, int]]) -> None:
    numbers = np.array([row[0] for row in rows], dtype=np.int32)
    right = np.array([row[1] for row in rows])
    found = cross_fitted(numbers, right, np.array([row[2] for row in rows]), 5, 3)
    assert found == pytest.approx([plain_rate(rows, row[0], row[2]) for row in rows])


@few
@given(
    st.lists(st.lists(st.floats(0.01, 1), min_size=1, max_size=4), min_size=0, max_size=4), st.integers(1, 9)
)
def test_combinations_are_the_likeliest_of_all(shares: list[list[float]], most: int) -> None:
    falling = [sorted(each, reverse=True) for each in shares]
    found = combinations(falling, most)
    every = [math.prod(each) for each in product(*falling)]
    assert [math.exp(log) for log, _ in found] == pytest.approx(sorted(every, reverse=True)[:most])
    assert len({picks for _, picks in found}) == len(found)
    assert all(share >= LEAST_SHARE for each in falling for share in each)


@few
@given(
    st.lists(
        st.lists(st.tuples(st.floats(0.01, 1), st.integers(0, 3)), min_size=1, max_size=3),
        min_size=0,
        max_size=4,
    ),
    st.dictionaries(st.integers(0, 3), st.floats(-3, 0)),
    st.integers(1, 9),
)
def test_combinations_are_the_likeliest_of_all_with_what_is_had_twice_less_likely(
    values: list[list[tuple[float, int]]], again: dict[int, float], most: int
) -> None:
    falling = [sorted(each, reverse=True) for each in values]
    shares, names = ([[value[part] for value in each] for each in falling] for part in (0, 1))
    found = combinations(shares, most, names, again)
    every = []
    for picked in product(*falling):
        twice = [one for (_, one), (_, other) in pairs(picked, 2) if one == other]
        every.append(sum(math.log(share) for share, _ in picked) + sum(again.get(one, 0) for one in twice))
    assert [score for score, _ in found] == pytest.approx(sorted(every, reverse=True)[:most])
    assert len({picks for _, picks in found}) == len(found)


@pytest.mark.parametrize(
    ("kind", "text", "pieces"),
    [
        ("day", "from 10/05/2023 to 1/2/24, in docs/10/05", ["10/05/2023", "1/2/24"]),
        ("time", "at 10:00 AM until 9pm, ratio 3:2", ["10:00 AM", "9pm"]),
        (
            "phone",
            "call +1234567890, 555-123-4567 or 555-1234, order 12",
            ["+1234567890", "555-123-4567", "555-1234"],
        ),
        ("measure", "a weight of 70kg and 1.8m on the 1st at 5pm, id a70kg", ["70", "1.8"]),
        ("fraction", "a tax of 7.5%, 5 percent off, 12,000%", ["0.075", "0.05"]),
        ("worded day", "on August 15th, 2024", ["2024-08-15"]),
        ("month and day", "on August 15th", ["08-15"]),
        ("moment", "on August 15th, 2024 at 9 am", ["2024-08-15 09:00:00"]),
        ("moment with T", "on August 15th, 2024 at 9 am", ["2024-08-15T09:00:00"]),
        ("worded number", "two tickets", ["2"]),
        ("expression", "work out (1+2)*3", ["(1+2)*3"]),
    ],
)
def test_pieces_of_other_spellings_are_found(kind: str, text: str, pieces: list[str]) -> None:
    assert [found.text for found in spans(text)[kind]] == pieces


def test_a_whole_number_of_the_text_may_be_meant_as_a_decimal_one() -> None:
    before = scene([], "fill in 20 gallons")
    found = {each.value: each.general for each in candidates(before, parameter("amount", kind="number"))}
    assert (found[b"20"], found[b"20.0"]) == ("text number next 1", "text number next 1 decimal")
    whole = {each.value for each in candidates(before, parameter("amount", kind="integer"))}
    assert b"20.0" not in whole


@pytest.mark.parametrize("kind", ["integer", "number"])
@pytest.mark.parametrize(
    ("digits", "read"),
    [("123456789012345678", True), ("-123456789012345678", True), ("1234567890123456789", False)],
)
def test_a_number_of_too_many_digits_is_none_and_not_another_one(kind: str, digits: str, read: bool) -> None:
    past = [Past("a:find", {}, {"user_id": digits})]
    for before in (scene([], f"look at {digits}"), scene([taken_apart(each) for each in past], "")):
        found = {each.value for each in candidates(before, parameter(kind=kind)) if each.value != LEFT_OUT}
        assert (digits.encode() in found) == read
        assert read or not found


def test_an_optional_argument_where_others_are_required_is_left_out_for_another_reason() -> None:
    schema = {"properties": {"a": {}, "b": {}}, "required": ["a"]}
    told = declared("t", schema), declared("t", {"properties": {"b": {}}})
    first = [candidates(scene([], ""), each["b"])[0].general for each in told]
    assert first == ["left out", "left out, none required"]
