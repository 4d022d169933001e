"""What a call touches, and when two touches may mean the same thing."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.speculation.touches import any_overlap, overlap, touches_of

TOOL = "files:read_file"


@pytest.mark.parametrize(
    ("templates", "arguments", "touches"),
    [
        (None, {"path": "a"}, ("files:",)),
        ([], {"path": "a"}, ()),
        (["files:{path}"], {"path": "a/b.md"}, ("files:a/b.md",)),
        (["files:{path}"], {"path": "./a//c/../b.md/"}, ("files:a/b.md",)),
        (["files:{path}"], {"path": "/etc/./passwd"}, ("files:/etc/passwd",)),
        (["files:{path}"], {"path": "."}, ("files:",)),
        (["files:{path}"], {"path": ""}, ("files:",)),
        (["files:{path}", "git:{repo}"], {"path": "a", "repo": "."}, ("files:a", "git:")),
        (["files:{path}", "files:./{path}"], {"path": "a"}, ("files:a",)),
        (["files:docs/{path}"], {"path": "../a"}, ("files:a",)),
        (["files:{a}/{b}"], {"a": "x", "b": "y"}, ("files:x/y",)),
        (["notes"], {}, ("notes:",)),
        # What cannot be told widens to the whole server.
        (["files:{path}"], {}, ("files:",)),
        (["files:{path}"], {"path": None}, ("files:",)),
        (["files:{path}"], {"path": 7}, ("files:",)),
        (["files:{path}"], {"path": ["a"]}, ("files:",)),
        (["files:{path}"], {"path": "../a"}, ("files:",)),
        (["files:{path}"], {"path": "/.."}, ("files:",)),
        (["files:{path}"], {"path": "~/a"}, ("files:",)),
        (["files:{path}"], {"path": "a\\b"}, ("files:",)),
        (["files:{path}"], {"path": "a\0b"}, ("files:",)),
    ],
)
def test_a_touch_is_a_normalised_path(templates: Any, arguments: Any, touches: Any) -> None:
    assert touches_of(TOOL, templates, arguments, arguments) == touches


def test_the_touches_of_a_call_are_told_in_one_order_whatever_the_process() -> None:
    """The order of a set differs from process to process."""
    names = "hgfedcba"
    templates = [f"{server}:{{path}}" for server in names]
    arguments = {"path": "x"}
    assert touches_of(TOOL, templates, arguments, arguments) == tuple(f"{name}:x" for name in sorted(names))


def test_a_value_that_the_sanitiser_changed_is_not_written_down() -> None:
    assert touches_of(TOOL, ["files:{path}"], {"path": "secret"}, {"path": "[REDACTED]"}) == ("files:",)
    assert touches_of(TOOL, ["files:{path}"], {"path": "a"}, {"_truncated": True}) == ("files:",)
    assert touches_of(TOOL, ["files:{path}"], None, None) == ("files:",)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("files:a", "files:a", True),
        ("files:a", "files:a/b", True),
        ("files:a", "files:ab", False),
        ("files:a/b", "files:a/c", False),
        ("files:", "files:a", True),
        ("files:/", "files:/a", True),
        ("files:", "git:", False),
        ("files:/a", "git:a", False),
        # Only the server knows where a relative path begins.
        ("files:/a", "files:b", True),
        # A file system may ignore case, or spell a letter in two ways.
        ("files:Notes.md", "files:notes.MD", True),
        ("files:caf\u00e9", "files:cafe\u0301", True),
    ],
)
def test_two_touches_overlap(one: str, other: str, same: bool) -> None:
    assert overlap(one, other) is same
    assert overlap(other, one) is same


PATHS = st.lists(st.sampled_from(["a", "b", "c"]), max_size=4)


@given(one=PATHS, other=PATHS, absolute=st.booleans())
def test_one_is_a_segment_wise_prefix_of_the_other(one: list[str], other: list[str], absolute: bool) -> None:
    """The twin counts common segments."""
    root = "/" if absolute else ""
    common = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))
    expected = common == min(len(one), len(other))
    assert overlap(f"s:{root}{'/'.join(one)}", f"s:{root}{'/'.join(other)}") is expected


@given(segments=st.lists(st.sampled_from(["a", "b", ".", "..", ""]), max_size=6))
def test_a_path_is_normalised_as_if_it_was_walked(segments: list[str]) -> None:
    """The twin walks down and up; what leaves the root widens to the whole server."""
    where: list[str] = ["x"]
    inside = True
    for segment in segments:
        if segment == "..":
            inside = inside and bool(where)
            where = where[:-1]
        elif segment not in {"", "."}:
            where = [*where, segment]
    path = "/".join(["x", *segments])
    expected = "files:" + "/".join(where) if inside else "files:"
    assert touches_of(TOOL, ["files:{path}"], {"path": path}, {"path": path}) == (expected,)


@given(
    ones=st.lists(st.sampled_from(["s:a", "s:b/c", "t:"]), max_size=3),
    other=st.sampled_from(["s:a/x", "t:q"]),
)
def test_any_means_any(ones: list[str], other: str) -> None:
    assert any_overlap(ones, [other]) is any(overlap(one, other) for one in ones)
    assert any_overlap([other], ones) is any_overlap(ones, [other])
