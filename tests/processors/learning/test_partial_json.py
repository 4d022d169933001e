"""Of JSON that was cut off, and of texts that only begin like it, what is whole is read, in linear time."""

from __future__ import annotations

import re
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.processors.learning.argument_values import ITEMS_MOST, TEXT_BYTES_MOST, leaves
from pml.processors.learning.partial_json import read_json

CLOSING = {"{": "}", "[": "]"}
PIECES = ["{", "}", "[", "]", ",", ":", '"', "\\", '\\"', '"k":', '"v"', '"x, y"']
PIECES += ["true", "-1.5", "é", "_", "…", "%", " ", "\n", "\t", "\u2003"]


def searched(text: str) -> Any:
    """The plain twin: what is to be left out is looked for from each place of the text. It takes what stands
    in a string that was cut off for more structure, and then knows nothing."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    opened, end = [], 0
    for match in re.finditer(r'"(?:[^"\\]|\\.)*"|[\[\]{},]', text):
        end = match.end()
        if match[0] in CLOSING:
            opened.append(match[0])
        elif match[0] in ("]", "}") and opened:
            opened.pop()
    body = re.sub(r"[-+\w.…]*\s*$", "", text[:end] + text[end:].partition('"')[0])
    if opened[-1:] == ["{"]:
        body = re.sub(r'([{,])\s*"(?:[^"\\]|\\.)*"\s*:?\s*$', r"\1", body)
    body = re.sub(r",\s*$", "", body)
    try:
        return orjson.loads(body + "".join(CLOSING[each] for each in reversed(opened)))
    except orjson.JSONDecodeError:
        return None


@settings(max_examples=300)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_what_a_search_finds_is_read(text: str) -> None:
    expected = searched(text)
    assert expected is None or read_json(text) == expected


@settings(max_examples=200)
@given(st.lists(st.sampled_from([each for each in PIECES if '"' not in each]), max_size=12).map("".join))
def test_where_no_string_is_cut_nothing_else_is_read(text: str) -> None:
    assert read_json(text) == searched(text)


def test_what_stands_before_a_string_that_was_cut_is_read_whatever_the_string_says() -> None:
    assert read_json('{"id": 7, "note": "see [1], {2} and \\"3') == {"id": 7}
    assert read_json('[{"id": 7}, {"id": 8, "note\\') == [{"id": 7}, {"id": 8}]


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "text",
    [
        "[INFO] " + "0f" * 32_000 + "%",
        '{"id": 7}\n{"key": ' + "0f" * 32_000 + "%",
        "[" + " " * 65_000 + "%",
        '{"x": 1, "v"' + " " * 65_000 + "%",
        '["' + '\\"' * 32_000,
    ],
    ids=["hex", "lines", "blanks", "blanks behind a name", "escaped quotes"],
)
def test_long_texts_that_are_no_json_are_passed_over(text: str) -> None:
    """Where each place of them is tried anew, this takes many minutes, and nothing else goes on meanwhile."""
    assert len(text) <= TEXT_BYTES_MOST
    found = leaves({"content": [text] * ITEMS_MOST})
    assert {leaf.pattern for leaf in found} <= {"content"}
