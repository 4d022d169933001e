"""A session that never ends is cut into parts that have room."""

from __future__ import annotations

from pml.schemas.identifiers import is_name
from pml.streams.mcp_server.session_parts import SessionParts, part_name


def test_after_so_many_runs_another_part_begins() -> None:
    parts = SessionParts(runs_max=2)

    assert [parts.next_run("t", "a") for _ in range(5)] == ["a", "a", "a.2", "a.2", "a.3"]
    assert parts.next_run("t", "b") == "b"
    assert parts.next_run("other", "a") == "a"


def test_a_part_that_is_full_already_is_left_once() -> None:
    parts = SessionParts(runs_max=9)
    assert [parts.next_run("t", "a"), parts.next_run("t", "a")] == ["a", "a"]
    parts.full("t", "a", "a")
    assert parts.next_run("t", "a") == "a.2"
    parts.full("t", "a", "a")
    assert parts.next_run("t", "a") == "a.2"


def test_what_was_not_used_for_longest_is_forgotten() -> None:
    parts = SessionParts(runs_max=1, sessions_max=1)
    assert [parts.next_run("t", name) for name in ("a", "a", "b", "a")] == ["a", "a.2", "b", "a"]


def test_a_part_of_a_long_name_is_a_name() -> None:
    for number in (1, 2, 1_000):
        assert is_name(part_name("s" * 128, number))
    assert part_name("s" * 128, 2) != part_name("s" * 128, 1)
