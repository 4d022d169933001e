"""A call that waits for a person, in a line."""

from __future__ import annotations

import pytest

from pml.streams.approval_text import call_lines, calls_of, shown_arguments


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ({"arguments": {"path": "é.md"}}, '{"path":"é.md"}'),
        ({"arguments": {}}, "{}"),
        (
            {"arguments": {"force": True}, "computed": {"path": "n1.first", "text": "n2"}},
            '{"force":true}, path from n1.first, text from n2',
        ),
        ({"arguments": None}, "any arguments"),
        ({}, "any arguments"),
    ],
)
def test_what_is_known_and_where_the_rest_comes_from(call: dict[str, object], told: str) -> None:
    assert shown_arguments(call) == told


def test_a_request_about_one_call_is_that_call() -> None:
    asked = {"task_id": "n1", "effect": "write", "tool": "a:b", "arguments": {}}
    assert calls_of(asked) == [asked]
    assert calls_of({**asked, "calls": None}) == [{**asked, "calls": None}]
    assert list(call_lines(asked)) == ["n1: write a:b {}"]


def test_a_request_about_several_calls_has_a_line_for_each_and_says_what_it_leaves_out() -> None:
    first = {"task_id": "n1", "effect": "write", "tool": "a:b", "arguments": {}, "conditional": True}
    second = {"task_id": "", "effect": "read", "tool": "a:c"}
    assert list(call_lines({"calls": [first, second], "omitted": 4})) == [
        "n1: write a:b {} (may never come)",
        "any call: read a:c any arguments",
        "and 4 more calls, each in its turn",
    ]


def test_what_nobody_would_see_is_written_out() -> None:
    """Two paths that differ in it would look the same; consent is to what is shown."""
    call = {"task_id": "n1", "effect": "write", "tool": "a:b\u200d", "arguments": {"path": "a\u200c.md"}}
    computed = {**call, "tool": "a:b", "arguments": None, "computed": {"p\u00a0": "n1"}}
    assert list(call_lines({"calls": [call, computed]})) == [
        r'n1: write a:b\u200d {"path":"a\u200c.md"}',
        r"n1: write a:b p\xa0 from n1",
    ]
