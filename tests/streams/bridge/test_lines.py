"""Lines of a server's output: cut right, bounded, and a long one still says which request it answers."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.streams.bridge.lines import EDGE_BYTES, LineReader, LongLine, answered_id

LIMIT = 20


def read(text: bytes, cuts: list[int], limit: int = LIMIT) -> list[bytes | LongLine]:
    reader, lines, start = LineReader(limit), list[bytes | LongLine](), 0
    for cut in [*sorted(cuts), len(text)]:
        lines += reader.feed(text[start:cut])
        start = max(start, cut)
    return lines


@given(st.lists(st.text("ab", max_size=40), max_size=8), st.lists(st.integers(0, 300), max_size=20))
def test_lines_are_the_same_however_the_stream_is_cut(texts: list[str], cuts: list[int]) -> None:
    stream = "".join(text + "\n" for text in texts).encode()
    expected = [
        text.encode()
        if len(text) <= LIMIT
        else LongLine(text.encode()[:EDGE_BYTES], text.encode()[-EDGE_BYTES:], len(text))
        for text in texts
    ]
    assert read(stream, [min(cut, len(stream)) for cut in cuts]) == expected


def test_a_line_without_end_is_not_delivered() -> None:
    assert read(b"abc", []) == []


@given(st.integers(2_000, 9_000), st.integers(1, 3_000))
def test_the_ends_of_a_long_line_are_kept(size: int, chunk: int) -> None:
    text = bytes(index % 251 or 1 for index in range(size)).replace(b"\n", b" ")
    (line,) = read(text + b"\n", list(range(0, size, chunk)), limit=1_000)
    assert line == LongLine(text[:EDGE_BYTES], text[-EDGE_BYTES:], size)


RESULT = {"content": [{"type": "text", "text": "x" * 3_000, "id": 7}], "id": 8}


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "id": 31, "result": RESULT},
        {"id": 31, "jsonrpc": "2.0", "result": RESULT},
        {"result": RESULT, "jsonrpc": "2.0", "id": 31},
        {"result": RESULT, "id": 31, "jsonrpc": "2.0"},
        {"jsonrpc": "2.0", "result": RESULT, "id": 31},
        {"jsonrpc": "2.0", "id": 31, "error": {"code": 1, "message": "y" * 3_000}},
    ],
)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_the_request_is_known_from_both_ends(message: dict[str, object], separators: tuple[str, str]) -> None:
    text = json.dumps(message, separators=separators).encode()
    assert answered_id(text[:EDGE_BYTES], text[-EDGE_BYTES:]) == 31


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "id": 31, "method": "sampling/createMessage", "params": RESULT},
        {"jsonrpc": "2.0", "method": "notifications/message", "params": RESULT},
        {"result": {"id": 5}},
        {"jsonrpc": "2.0", "id": "text", "result": RESULT},
    ],
)
def test_what_answers_no_request_of_ours_is_not_taken_for_an_answer(message: dict[str, object]) -> None:
    text = json.dumps(message).encode()
    assert answered_id(text[:EDGE_BYTES], text[-EDGE_BYTES:]) is None
