"""`mcp-permissions.yaml`: which entry decides about a tool, and what it says."""

from __future__ import annotations

from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pml.schemas.permissions import Permission, PermissionFile, RetryRule


def pattern_for(tool: str, *patterns: str) -> str | None:
    found = PermissionFile(tools={pattern: Permission() for pattern in patterns}).find(tool)
    return found[0] if found else None


@pytest.mark.parametrize(
    ("tool", "patterns", "wins"),
    [
        ("git:log", ["git:log"], "git:log"),
        ("git:log", ["git:*", "git:log", "*"], "git:log"),
        ("git:log", ["*", "git:*"], "git:*"),
        ("git:log", ["git:*", "git:l*", "*:log"], "git:l*"),
        ("git:log", ["git:lo?", "git:l*"], "git:lo?"),
        ("git:log", ["git:l[aeiou]g", "git:*"], "git:l[aeiou]g"),
        ("git:log", ["git:[!l]*"], None),
        ("git:log", ["GIT:LOG", "git:status", "files:*"], None),
        ("git:log", [], None),
    ],
)
def test_the_most_specific_entry_decides(tool: str, patterns: list[str], wins: str | None) -> None:
    assert pattern_for(tool, *patterns) == wins
    assert pattern_for(tool, *reversed(patterns)) == wins


@pytest.mark.parametrize(
    "given_",
    ["2026-11-22T00:00:02Z", "2026-11-22T01:00:02+01:00", datetime(2026, 11, 22, 0, 0, 2, tzinfo=UTC)],
)
def test_the_time_of_an_approval_is_read_as_yaml_gives_it(given_: Any) -> None:
    assert Permission.model_validate({"approved_at": given_}).approved_at == "2026-11-22T00:00:02.000000Z"


def test_a_time_of_approval_that_is_none_is_refused() -> None:
    with pytest.raises(ValidationError):
        Permission.model_validate({"approved_at": "yesterday"})


PATTERNS = st.lists(st.text("ab:*?", min_size=1, max_size=5), max_size=6, unique=True)


@given(patterns=PATTERNS, tool=st.text("ab:", min_size=1, max_size=4))
def test_an_entry_is_found_where_any_matches_and_order_does_not_matter(
    patterns: list[str], tool: str
) -> None:
    matching = {pattern for pattern in patterns if fnmatchcase(tool, pattern)}
    found = pattern_for(tool, *patterns)
    assert (found in matching) if matching else found is None
    assert pattern_for(tool, *sorted(patterns)) == found
    if tool in patterns:
        assert found == tool


@pytest.mark.parametrize(
    ("entry", "effect"),
    [
        ({"scope": "minimal"}, "read"),
        ({"scope": "readonly"}, "read"),
        ({"scope": "filesystem"}, "write"),
        ({"scope": "made-up"}, "write"),
        ({}, "write"),
        ({"scope": "network-api", "effect": "read"}, "read"),
        ({"scope": "minimal", "effect": "write"}, "write"),
    ],
)
def test_an_effect_follows_from_the_scope_unless_it_is_said(entry: dict[str, Any], effect: str) -> None:
    assert Permission.model_validate(entry).declared_effect == effect


def test_what_is_not_said_is_the_careful_thing() -> None:
    entry = Permission()
    assert (entry.approval, entry.touches, entry.open_world) == ("hil", None, None)
    assert not any((entry.shared, entry.speculate_open_world, entry.idempotent, entry.retryable))


@pytest.mark.parametrize("name", ["approval", "approvalMode", "approval_mode"])
def test_approval_has_three_spellings(name: str) -> None:
    assert Permission.model_validate({name: "auto"}).approval == "auto"


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (True, RetryRule(attempts=3, backoff_ms=500)),
        (False, None),
        (None, None),
        (5, RetryRule(attempts=5, backoff_ms=500)),
        ({"attempts": 2, "backoff_ms": 0}, RetryRule(attempts=2, backoff_ms=0)),
    ],
)
def test_retryable_has_short_forms(value: Any, rule: RetryRule | None) -> None:
    assert Permission.model_validate({"retryable": value}).retryable == rule


@pytest.mark.parametrize(
    "entry",
    [
        {"approval": "yes"},
        {"effect": "maybe"},
        {"retryable": 11},
        {"retryable": 0},
        {"retryable": "often"},
        {"ttl_s": 0},
        {"ttl_s": 86_401},
        {"timeout_s": -1},
        {"touches": "files:{path}"},
        {"when": {"method": "GET"}},
        {"aproval": "auto"},
    ],
)
def test_a_wrong_entry_is_refused(entry: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Permission.model_validate(entry)


def test_a_file_of_another_version_is_refused() -> None:
    with pytest.raises(ValidationError):
        PermissionFile.model_validate({"version": 2})


def test_a_file_whose_tools_are_empty_allows_nothing() -> None:
    file = PermissionFile.model_validate({"version": 1, "tools": None})
    assert file.find("files:read_file") is None


def test_the_name_of_a_tool_alone_verifies_nothing() -> None:
    with pytest.raises(ValidationError, match="does not say what its answer means"):
        Permission.model_validate({"verify": "files:read_file"})


@pytest.mark.parametrize(
    "rule",
    [
        {"tool": "read_file", "done": "result.found"},
        {"tool": "files:*", "done": "result.found"},
        {"tool": "files:read_file"},
        {"tool": "files:read_file", "done": ""},
        {"tool": "files:read_file", "done": "result.found", "after_s": -1},
        {"tool": "files:read_file", "done": "result.found", "after_s": 3_601},
        {"tool": "files:read_file", "done": "result.found", "result": "x"},
    ],
)
def test_a_rule_that_is_not_whole_is_refused(rule: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Permission.model_validate({"verify": rule})
