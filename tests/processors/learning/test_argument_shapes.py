"""Values are told apart by what they look like."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.processors.learning.argument_candidates import LEFT_OUT
from pml.processors.learning.argument_shapes import LOOKS, shape_of
from pml.schemas.canonical import canonical_json


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ("", "empty"),
        ("2024-08-15", "date"),
        ("2024-08-15T10:00", "moment"),
        ("10/05/2023", "day"),
        ("10-06", "month and day"),
        ("10:00 AM", "time"),
        ("42", "integer"),
        ("+1 555 1234", "digits"),
        ("-3.5", "decimal"),
        ("a@b.org", "email"),
        ("https://a.b/c", "link"),
        ("#team", "tag"),
        ("notes.md", "file"),
        ("docs/notes", "path"),
        ("AAPL", "code"),
        ("USR001", "key"),
        ("read_file", "snake"),
        ("Boston", "name"),
        ("boston", "word"),
        ("New York City", "names"),
        ("an Italian place", "words"),
        ("what is the best way to get there", "sentence"),
        (7, "int 1"),
        (-1234, "int 4"),
        (10**12, "int 7"),
        (1.5, "float"),
        (True, "bool"),
        (["a@b.org", "x"], "list of email"),
        ([], "list"),
        ({"a": 1}, "dict"),
    ],
)
def test_a_value_has_a_look(value: Any, shape: str) -> None:
    assert shape_of(canonical_json(value)) == shape


def test_what_is_left_out_has_a_look_of_its_own() -> None:
    assert shape_of(LEFT_OUT) == "left out"


@settings(max_examples=200)
@given(st.text("a/. \n", max_size=8))
def test_a_path_is_one_word_with_a_slash(text: str) -> None:
    assert (dict(LOOKS)["path"].fullmatch(text) is None) == ("/" not in text or text.split() != [text])


@pytest.mark.timeout(120)
def test_a_long_line_of_slashes_is_looked_at_once() -> None:
    """Tried anew at each slash, these values take minutes."""
    lines = (f"{'/' * 4_000} {number} {number}" for number in range(3_000))
    assert {shape_of(canonical_json(line)) for line in lines} == {"words"}
