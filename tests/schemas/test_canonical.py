"""One spelling for equal JSON values, and keyed hashes of it."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from uuid import UUID

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.schemas.canonical import (
    NESTING_MAX,
    NotJson,
    canonical_json,
    content_hash,
    is_too_deep,
    value_hash,
)
from pml.schemas.errors import ConfigurationError, PMLError

patient = settings(deadline=None)  # a busy machine is no failure
KEY = b"0123456789abcdef"
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=12)
)
JSON_VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)


@dataclass
class Point:
    x: int


class Colour(Enum):
    RED = "red"


def shuffled(value: object, seed: int) -> object:
    if isinstance(value, list):
        return [shuffled(item, seed) for item in value]
    if not isinstance(value, dict):
        return value
    names = list(value)
    random.Random(seed).shuffle(names)
    return {name: shuffled(value[name], seed) for name in names}


@patient
@given(JSON_VALUES, st.integers())
def test_the_order_of_keys_does_not_change_the_spelling(value: object, seed: int) -> None:
    data = canonical_json(value)
    assert canonical_json(shuffled(value, seed)) == data
    assert orjson.loads(data) == value


@patient
@given(JSON_VALUES)
def test_the_spelling_is_a_fixed_point(value: object) -> None:
    data = canonical_json(value)
    assert canonical_json(orjson.loads(data)) == data


@patient
@given(JSON_VALUES, JSON_VALUES)
def test_values_that_read_differently_are_spelled_differently(one: object, other: object) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (canonical_json(one) == canonical_json(other)) == same


def test_there_is_no_white_space_and_keys_are_sorted() -> None:
    assert canonical_json({"b": [1, 2.5, None, True], "a": "é"}) == '{"a":"é","b":[1,2.5,null,true]}'.encode()


def test_a_tuple_is_an_array() -> None:
    assert canonical_json({"a": (1, ("x",))}) == canonical_json({"a": [1, ["x"]]})


def test_one_and_one_point_zero_and_true_are_three_values() -> None:
    assert len({canonical_json(value) for value in (1, 1.0, True)}) == 3


@pytest.mark.parametrize(
    "value",
    [
        math.nan, math.inf, -math.inf, 2**64, -(2**63) - 1, b"x", {1: 2}, {"a": {3}}, "\ud800", {"\udfff": 1},
        object(), Point(1), Colour.RED, UUID(int=1), datetime(2026, 1, 1, tzinfo=UTC), [(1, UUID(int=2))],
        (math.nan,),
    ],
)  # fmt: skip
def test_what_json_cannot_carry_is_refused_anywhere(value: object) -> None:
    for whole in (value, [value], {"a": [None, {"b": value}]}):
        with pytest.raises(NotJson) as caught:
            canonical_json(whole)
        assert isinstance(caught.value, PMLError)
        assert caught.value.code == "NOT_JSON"


def test_the_refusal_names_the_place() -> None:
    with pytest.raises(NotJson, match=r"\$\.a\[1\]\.b is nan"):
        canonical_json({"a": [None, {"b": math.nan}]})


def test_cycles_and_bottomless_nesting_are_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(NotJson):
        canonical_json(endless)


@patient
@given(JSON_VALUES)
def test_a_value_hash_is_32_hex_digits_and_needs_its_key(value: object) -> None:
    digest = value_hash(value, KEY)
    assert len(bytes.fromhex(digest)) == 16
    assert digest == value_hash(value, KEY)
    assert digest != value_hash(value, KEY + b"x")


def test_a_value_hash_does_not_change_between_releases() -> None:
    assert value_hash({"b": 1, "a": [None]}, KEY) == "66cce28e7d4f1b20067e96ffbce0a03c"
    assert content_hash(b"pml") == "dff548dc33a1e85a23d11235c1b99f2d"


@pytest.mark.parametrize("key", [b"", b"short", b"x" * 65])
def test_a_key_that_protects_nothing_is_refused(key: bytes) -> None:
    with pytest.raises(ConfigurationError, match="installation key"):
        value_hash({}, key)


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}], ids=["array", "object"])
def test_a_value_that_records_could_not_wrap_is_too_deep(wrap: Callable[[object], object]) -> None:
    value: object = 1
    for level in range(1, NESTING_MAX + 2):
        value = wrap(value)
        assert is_too_deep(value) == (level > NESTING_MAX)
