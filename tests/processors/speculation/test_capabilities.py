"""A capability is as safe as the least safe thing in it: spec story 12.3, DESIGN §4, condition 1."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.speculation.capabilities import (
    Surroundings,
    can_speculate_capability,
    capability_requires_validation,
)
from pml.processors.speculation.guard import Verdict
from pml.schemas.catalog import Capability, ServerTools, Tool, ToolHints
from pml.schemas.permissions import PermissionFile

PERMISSIONS = PermissionFile.model_validate(
    {
        "tools": {
            "files:read_file": {"scope": "readonly", "approval": "auto"},
            "files:write_file": {"scope": "filesystem", "approval": "auto"},
            "files:delete_file": {"scope": "readonly", "approval": "hil"},
            "time:now": {"scope": "minimal", "approval": "auto", "cacheable": False},
            "web:get": {"scope": "network-api", "approval": "auto", "effect": "read"},
            "http:request": {
                "scope": "network-api",
                "approval": "auto",
                "effect": "read",
                "when": {"method": ["GET"]},
                "open_world": False,
            },
        }
    }
)
SAFE, UNSAFE = "files:read_file", ("files:write_file", "files:delete_file", "time:now", "git:push")


def capability(*tools: str, arguments: dict[str, Any] | None = None) -> Capability:
    """A capability whose tasks are tools, or capabilities where a name has no colon."""
    tasks = [
        {"id": f"n{number}", "arguments": arguments or {}, ("tool" if ":" in name else "capability"): name}
        for number, name in enumerate(tools)
    ]
    return Capability.model_validate({"tenant": "local", "name": "c", "tasks": tasks})


def around(**capabilities: Capability) -> Surroundings:
    return Surroundings(capabilities, PERMISSIONS, {})


def test_a_capability_of_safe_tools_is_safe() -> None:
    found = around(c=capability(SAFE, SAFE))
    assert can_speculate_capability("c", found) == Verdict(True)
    assert not capability_requires_validation("c", found)


@pytest.mark.parametrize(
    ("tool", "reason"),
    [
        ("files:write_file", "effect (files:write_file)"),
        ("files:delete_file", "approval_required (files:delete_file)"),
        ("time:now", "not_cacheable (time:now)"),
        ("git:push", "tool_not_approved (git:push)"),
    ],
)
def test_one_unsafe_tool_makes_it_unsafe(tool: str, reason: str) -> None:
    assert can_speculate_capability("c", around(c=capability(SAFE, tool))) == Verdict(False, reason)


def test_what_is_called_through_another_counts_too() -> None:
    found = around(outer=capability(SAFE, "inner"), inner=capability("files:write_file"))
    assert can_speculate_capability("outer", found) == Verdict(False, "effect (files:write_file)")
    assert not capability_requires_validation("outer", found)
    deep = around(outer=capability("inner"), inner=capability("files:delete_file"))
    assert capability_requires_validation("outer", deep)


@pytest.mark.parametrize("names", [("a",), ("a", "b"), ("a", "b", "c")])
def test_a_cycle_is_found_and_refused(names: tuple[str, ...]) -> None:
    ring = dict(zip(names, (*names[1:], names[0]), strict=True))
    found = around(**{name: capability(SAFE, following) for name, following in ring.items()})
    assert can_speculate_capability("a", found) == Verdict(False, "cycle (a)")
    assert capability_requires_validation("a", found)


def test_the_same_capability_twice_is_no_cycle() -> None:
    found = around(outer=capability("inner", "inner"), inner=capability(SAFE))
    assert can_speculate_capability("outer", found).allowed


def test_an_unknown_capability_is_unsafe() -> None:
    assert can_speculate_capability("c", around()) == Verdict(False, "unknown (c)")
    assert can_speculate_capability("c", around(c=capability("gone"))) == Verdict(False, "unknown (gone)")
    assert capability_requires_validation("c", around())


def test_five_deep_is_the_most() -> None:
    names = [f"c{number}" for number in range(6)]
    chain = {name: capability(after) for name, after in zip(names, [*names[1:], SAFE], strict=True)}
    assert can_speculate_capability("c1", around(**chain)).allowed
    assert can_speculate_capability("c0", around(**chain)) == Verdict(False, "too_deep (c5)")


@pytest.mark.parametrize(("method", "allowed"), [("GET", True), ("POST", False), (None, False)])
def test_an_effect_that_depends_on_arguments_needs_them_written_down(method: Any, allowed: bool) -> None:
    argument = {"method": method} if method else {"method": {"type": "parameter", "parameter_name": "m"}}
    found = around(c=capability("http:request", arguments=argument))
    assert can_speculate_capability("c", found).allowed is allowed


@pytest.mark.parametrize("read_only", [True, False])
def test_what_a_server_says_of_its_tool_counts(read_only: bool) -> None:
    tool = Tool(name="read_file", hints=ToolHints(read_only=read_only), definition="d")
    servers = {"files": ServerTools(server="files", status="listed", tools=(tool,))}
    found = Surroundings({"c": capability(SAFE)}, PERMISSIONS, servers)
    assert can_speculate_capability("c", found).allowed is read_only


def test_results_do_not_leave_this_machine_early() -> None:
    leaking = capability("web:get", arguments={"url": {"type": "reference", "expression": "n9.url"}})
    assert can_speculate_capability("c", around(c=leaking)) == Verdict(False, "open_world (web:get)")
    assert can_speculate_capability("c", around(c=capability("web:get"))).allowed


@st.composite
def surroundings(draw: st.DrawFn) -> Surroundings:
    """Up to five capabilities that call safe and unsafe tools and each other, in any way."""
    names = [f"c{number}" for number in range(draw(st.integers(1, 5)))]
    calls = st.sampled_from([SAFE, *UNSAFE, *names, "missing"])
    made = {name: capability(*draw(st.lists(calls, min_size=1, max_size=3))) for name in names}
    return around(**made)


@given(found=surroundings())
def test_can_speculate_implies_that_nobody_must_be_asked(found: Surroundings) -> None:
    for name in found.capabilities:
        if can_speculate_capability(name, found).allowed:
            assert not capability_requires_validation(name, found)


@given(found=surroundings())
def test_what_may_run_early_reaches_only_safe_tools(found: Surroundings) -> None:
    """A brute-force twin: everything that can be reached, by a walk that knows no order and no depth."""
    for name in found.capabilities:
        reached, waiting = set(), {name}
        while waiting:
            item = waiting.pop()
            if item not in reached:
                reached.add(item)
                tasks = found.capabilities[item].tasks if item in found.capabilities else ()
                waiting |= {task.tool or task.capability or "" for task in tasks}
        if can_speculate_capability(name, found).allowed:
            assert {item for item in reached if ":" in item} <= {SAFE}
            assert all(item in found.capabilities for item in reached if ":" not in item)
