"""Values are told apart by what they look like."""

from __future__ import annotations

from typing import Any

import pytest

from pml.processors.learning.argument_candidates import LEFT_OUT
from pml.processors.learning.argument_shapes import shape_of
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
