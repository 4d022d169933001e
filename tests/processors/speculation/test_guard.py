"""What may run early: DESIGN §4, conditions 1 and 5; the acceptance list of spec story 12.3."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.processors.speculation.guard import (
    Grant,
    Refusal,
    Verdict,
    can_speculate,
    grant,
    grant_if_approved,
    may_run_early,
    may_write,
    requires_validation,
)
from pml.schemas.catalog import ServerTools, Tool, ToolHints
from pml.schemas.permissions import Permission, PermissionFile

TOOL = "files:read_file"


def file(**entry: Any) -> PermissionFile:
    return PermissionFile.model_validate({"tools": {TOOL: {"approval": "auto", **entry}}})


def server(trusted: bool = False, definition: str = "v1", **hints: Any) -> ServerTools:
    tool = Tool(name="read_file", hints=ToolHints(**hints), definition=definition)
    return ServerTools(server="files", status="listed", trusted=trusted, tools=(tool,))


def test_what_no_argument_can_change_is_looked_at_first() -> None:
    """Some arguments may let a call run early only where nobody is asked and it is cacheable and may read."""
    entry = {"scope": "readonly", "approval": "auto"}
    entries = {
        "files:read": entry,
        "files:asked": {**entry, "approval": "hil"},
        "files:now": {**entry, "cacheable": False},
        "files:write": {**entry, "effect": "write"},
        "files:some": {**entry, "effect": "read", "when": {"method": ["GET"]}},
        "files:erase": entry,
    }
    file = PermissionFile.model_validate({"tools": entries})
    erase = Tool(name="erase", hints=ToolHints(read_only=False), definition="d")
    others = (Tool(name=name.partition(":")[2], definition="d") for name in entries if name != "files:erase")
    server = ServerTools(server="files", status="listed", tools=(erase, *others))
    names = [*entries, "files:unknown"]
    assert [name for name in names if may_run_early(name, file, server)] == ["files:read", "files:some"]
    assert [name for name in names if may_run_early(name, file, None)] == [
        "files:read",
        "files:some",
        "files:erase",
    ]


def test_a_tool_that_its_server_lists_no_longer_never_runs_early() -> None:
    """What a destructive hint made a write must not become a read because the hint has gone with the tool."""
    purge = Tool(name="purge", hints=ToolHints(destructive=True), definition="d")
    listed = ServerTools(server="files", status="listed", tools=(purge,))
    without = listed.model_copy(update={"tools": ()})
    entries = PermissionFile.model_validate({"tools": {"files:*": {"scope": "readonly", "approval": "auto"}}})
    assert can_speculate("files:purge", {}, entries, listed) == Verdict(False, "effect")
    assert can_speculate("files:purge", {}, entries, without) == Verdict(False, "not_listed")
    assert not may_run_early("files:purge", entries, listed)
    assert not may_run_early("files:purge", entries, without)


def test_a_minimal_tool_with_automatic_approval_is_safe() -> None:
    assert can_speculate(TOOL, {}, file(scope="minimal"), server()) == Verdict(True, reason="")


def test_a_tool_that_needs_a_human_is_not() -> None:
    permissions = PermissionFile.model_validate(
        {"tools": {TOOL: {"scope": "minimal", "approvalMode": "hil"}}}
    )
    assert can_speculate(TOOL, {}, permissions, server()) == Verdict(False, "approval_required")


def test_an_unknown_tool_is_not() -> None:
    found = grant("github:push", {}, file(scope="minimal"), None)
    assert isinstance(found, Refusal)
    assert found.code == "TOOL_NOT_APPROVED"
    assert "pml tools approve github:push" in found.message
    assert not can_speculate("github:push", {}, file(scope="minimal"), None).allowed


@pytest.mark.parametrize("scope", ["filesystem", "network-api", "admin", "whatever"])
def test_a_tool_that_changes_the_world_is_not(scope: str) -> None:
    assert can_speculate(TOOL, {}, file(scope=scope), server()) == Verdict(False, "effect")


@pytest.mark.parametrize("scope", ["filesystem", "network-api", "admin"])
def test_a_tool_that_is_said_to_read_is_safe(scope: str) -> None:
    assert can_speculate(TOOL, {}, file(scope=scope, effect="read"), server()).allowed


def test_a_reading_scope_that_is_said_to_write_is_not() -> None:
    assert not can_speculate(TOOL, {}, file(scope="readonly", effect="write"), server()).allowed


def test_what_changes_by_itself_is_not_run_early() -> None:
    permissions = file(scope="readonly", cacheable=False)
    assert can_speculate(TOOL, {}, permissions, server()) == Verdict(False, "not_cacheable")


def test_what_others_share_may_be_joined_while_it_runs() -> None:
    assert can_speculate(TOOL, {}, file(scope="readonly", shared=True), server()).allowed


@pytest.mark.parametrize(
    ("arguments", "effect"),
    [
        ({"method": "GET"}, "read"),
        ({"method": "POST"}, "write"),
        ({}, "write"),
        ({"method": None}, "write"),
        ({"method": ["GET"]}, "write"),
    ],
)
def test_the_effect_may_depend_on_arguments(arguments: dict[str, Any], effect: str) -> None:
    found = grant(TOOL, arguments, file(effect="read", when={"method": ["GET", "HEAD"]}), server())
    assert isinstance(found, Grant)
    assert found.effect == effect


def test_true_is_not_one() -> None:
    found = grant(TOOL, {"dry": True}, file(effect="read", when={"dry": [1]}), server())
    assert isinstance(found, Grant)
    assert found.effect == "write"


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("hints", [{"read_only": False}, {"destructive": True}])
def test_a_hint_narrows(trusted: bool, hints: dict[str, Any]) -> None:
    assert not can_speculate(TOOL, {}, file(scope="readonly"), server(trusted, **hints)).allowed
    assert may_write(TOOL, Permission(scope="readonly"), server(trusted, **hints))


def test_a_hint_widens_only_where_its_server_is_trusted_and_the_file_is_silent() -> None:
    reads: dict[str, Any] = {"read_only": True}
    assert not can_speculate(TOOL, {}, file(scope="filesystem"), server(False, **reads)).allowed
    assert can_speculate(TOOL, {}, file(scope="filesystem"), server(True, **reads)).allowed
    assert not can_speculate(TOOL, {}, file(scope="filesystem"), server(True)).allowed
    assert not can_speculate(
        TOOL, {}, file(scope="filesystem", effect="write"), server(True, **reads)
    ).allowed


def test_a_tool_that_changed_loses_its_approval() -> None:
    permissions = file(scope="readonly", definition="v1")
    assert can_speculate(TOOL, {}, permissions, server(definition="v1")).allowed
    found = grant(TOOL, {}, permissions, server(definition="v2"))
    assert isinstance(found, Refusal)
    assert found.code == "TOOL_NOT_APPROVED"
    assert "changed" in found.message


@pytest.mark.parametrize(
    ("entry", "hints", "trusted", "open_world"),
    [
        ({"scope": "network-api"}, {}, False, True),
        ({"scope": "minimal"}, {}, False, False),
        ({"scope": "minimal"}, {"open_world": True}, False, True),
        ({"scope": "network-api"}, {"open_world": False}, False, True),
        ({"scope": "network-api"}, {"open_world": False}, True, False),
        ({"scope": "network-api"}, {}, True, True),
        ({"scope": "network-api", "open_world": False}, {"open_world": True}, False, False),
        ({"scope": "minimal", "open_world": True}, {}, False, True),
    ],
)
def test_an_open_world_tool_gets_no_results_early(
    entry: dict[str, Any], hints: dict[str, Any], trusted: bool, open_world: bool
) -> None:
    permissions = file(effect="read", **entry)
    listed = server(trusted, **hints)
    assert can_speculate(TOOL, {}, permissions, listed).allowed
    assert can_speculate(TOOL, {}, permissions, listed, from_results=True).allowed is not open_world
    widened = file(effect="read", speculate_open_world=True, **entry)
    assert can_speculate(TOOL, {}, widened, listed, from_results=True).allowed


ENTRIES = st.fixed_dictionaries(
    {"approval": st.sampled_from(["auto", "auto", "hil"])},
    optional={
        "scope": st.sampled_from(["minimal", "readonly", "filesystem", "network-api", "admin"]),
        "effect": st.sampled_from(["read", "write"]),
        "when": st.just({"method": ["GET"]}),
        "open_world": st.booleans(),
        "cacheable": st.sampled_from([True, True, False]),
        "shared": st.sampled_from([False, False, True]),
        "definition": st.sampled_from(["v1", "v2"]),
    },
)
HINTS = st.fixed_dictionaries(
    {},
    optional={
        "read_only": st.sampled_from([True, True, False]),
        "destructive": st.sampled_from([False, False, True]),
        "open_world": st.booleans(),
    },
)


@given(
    pattern=st.sampled_from([TOOL, "files:*", "*", "web:*"]),
    entry=ENTRIES,
    hints=HINTS,
    trusted=st.booleans(),
    call=st.tuples(st.sampled_from(["GET", "POST", None]), st.booleans()),
)
@settings(max_examples=500)
def test_what_may_run_early_needs_nobodys_word_and_only_reads(
    pattern: str, entry: dict[str, Any], hints: dict[str, Any], trusted: bool, call: tuple[Any, bool]
) -> None:
    method, from_results = call
    permissions = PermissionFile.model_validate({"tools": {pattern: entry}})
    arguments = {"method": method}
    listed = server(trusted, **hints)
    verdict = can_speculate(TOOL, arguments, permissions, listed, from_results)
    found = grant(TOOL, arguments, permissions, listed)
    if not verdict.allowed:
        assert verdict.reason
        return
    assert isinstance(found, Grant)
    assert may_run_early(TOOL, permissions, listed)
    assert not requires_validation(TOOL, permissions)
    assert entry["approval"] == "auto"
    assert found.effect == "read"
    assert found.permission.cacheable
    assert can_speculate(TOOL, arguments, permissions, listed, from_results=False).allowed
    assert not may_write(TOOL, found.permission, listed) or entry.get("when")
    # Without its hints an untrusted server's tool may do no less.
    if not trusted:
        assert can_speculate(TOOL, arguments, permissions, server(), from_results=False).allowed


@given(entry=ENTRIES, hints=HINTS, trusted=st.booleans(), method=st.sampled_from(["GET", "POST"]))
def test_what_cannot_write_never_does(
    entry: dict[str, Any], hints: dict[str, Any], trusted: bool, method: str
) -> None:
    permission = Permission.model_validate({"approval": "auto", **entry})
    if may_write(TOOL, permission, server(trusted, **hints)):
        return
    permissions = PermissionFile(tools={TOOL: permission})
    found = grant(TOOL, {"method": method}, permissions, server(trusted, **hints))
    assert isinstance(found, Refusal) or found.effect == "read"


def test_a_tool_that_nobody_approved_is_validated_first() -> None:
    entries = {
        "a:b": {"scope": "readonly", "approval": "auto"},
        "a:c": {"scope": "readonly", "approval": "hil"},
    }
    file = PermissionFile.model_validate({"tools": entries})
    assert [requires_validation(name, file) for name in ("a:b", "a:c", "a:d")] == [False, True, True]


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize("read_only", [True, False, None])
@pytest.mark.parametrize("scope", ["minimal", "network-api"])
@pytest.mark.parametrize("effect", ["read", "write", None])
def test_what_is_looked_at_first_never_says_otherwise_than_the_guard(
    trusted: bool, read_only: bool | None, scope: str, effect: str | None
) -> None:
    """Without conditions on arguments both say the same, whoever runs the server and whatever it hints."""
    entry = {"scope": scope, "approval": "auto", "speculate_open_world": True, "effect": effect}
    file = PermissionFile.model_validate({"tools": {"a:b": entry}})
    tool = Tool(name="b", hints=ToolHints(read_only=read_only, open_world=False), definition="d")
    server = ServerTools(server="a", status="listed", tools=(tool,), trusted=trusted)
    for known in (server, None):
        early = may_run_early("a:b", file, known)
        granted = grant("a:b", {}, file, known)
        assert not isinstance(granted, Grant) or early is (granted.effect == "read")
        assert early or not can_speculate("a:b", {}, file, known).allowed


def test_only_a_trusted_server_says_that_a_tool_cannot_write() -> None:
    """And not of one whose effect depends on its arguments."""
    silent = Permission(scope="filesystem")
    known = [server(True, read_only=True), server(False, read_only=True), server(True), None]
    assert [may_write(TOOL, silent, listed) for listed in known] == [False, True, True, True]
    reads = Permission.model_validate({"scope": "readonly"})
    unlisted = ServerTools(server="files", status="listed")
    assert [may_write(TOOL, reads, listed) for listed in (server(), unlisted, None)] == [False, False, False]
    some = Permission.model_validate({"effect": "read", "when": {"method": ["GET"]}})
    assert may_write(TOOL, some, server(True, read_only=True))


def test_a_tool_that_only_reads_is_not_destructive_whatever_its_hint() -> None:
    """MCP: the destructive hint means something only where a tool is not read-only."""
    assert can_speculate(TOOL, {}, file(scope="readonly"), server(read_only=True, destructive=True)).allowed


def test_a_tool_that_is_not_listed_now_has_not_changed() -> None:
    found = grant(TOOL, {}, file(scope="readonly", definition="v1"), None)
    assert isinstance(found, Grant)
    assert found.definition == ""


def test_a_person_may_approve_a_call_of_a_tool_that_changed() -> None:
    found = grant_if_approved(TOOL, {}, file(approval="hil", definition="v1"), server(definition="v2"))
    assert (found.pattern, found.definition, found.permission.approval) == (TOOL, "v2", "auto")
