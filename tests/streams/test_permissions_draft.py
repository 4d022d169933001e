"""What is proposed for tools that nobody has looked at."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pml.schemas.catalog import ServerTools, Tool, ToolHints
from pml.schemas.permissions import PermissionFile
from pml.streams.permissions_draft import draft_text, proposal, proposals

HINTS = st.builds(
    ToolHints,
    read_only=st.none() | st.booleans(),
    destructive=st.none() | st.booleans(),
    open_world=st.none() | st.booleans(),
)
NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20) | st.sampled_from(
    ["readFile", "delete_all", "get-or-create", 'a"b: {x} # y', "current_time"]
)


@pytest.mark.parametrize(
    ("name", "hints", "approval", "why"),
    [
        ("git_log", {"read_only": True}, "auto", "only reads"),
        ("list_files", {}, "auto", "its name says that it reads (list)"),
        ("readFile", {}, "auto", "(read)"),
        ("delete_file", {"read_only": True}, "hil", "destroys (delete)"),
        ("send_mail", {"read_only": True}, "hil", "its name does not (send)"),
        ("send_mail", {}, "hil", "changes something (send)"),
        ("get_or_create", {}, "hil", "(create)"),
        ("frobnicate", {}, "hil", "nothing says what it does"),
        ("frobnicate", {"read_only": False}, "hil", "its server says that it changes something"),
        ("frobnicate", {"destructive": True}, "hil", "may destroy"),
    ],
)
def test_the_stricter_of_hint_and_name_counts(
    name: str, hints: dict[str, Any], approval: str, why: str
) -> None:
    found = proposal(f"s:{name}", Tool(name=name, hints=ToolHints(**hints)))

    assert found.entry["approval"] == approval
    assert why in found.reason
    assert (found.entry["scope"] == "readonly") is (approval == "auto")


def test_what_changes_by_itself_is_not_kept_and_a_path_is_touched() -> None:
    clock = proposal("s:get_current_time", Tool(name="get_current_time"))
    assert clock.entry["cacheable"] is False
    schema = {"type": "object", "required": ["repo_path"]}
    reads = proposal(
        "git:git_log", Tool(name="git_log", input_schema=schema, hints=ToolHints(read_only=True))
    )
    assert reads.entry["touches"] == ["git:{repo_path}"]
    out = proposal("s:fetch", Tool(name="fetch", hints=ToolHints(open_world=True)))
    assert (out.entry["open_world"], "out of this machine" in out.reason) == (True, True)


def test_tools_with_an_entry_are_left_alone() -> None:
    servers = {
        "a": ServerTools(server="a", status="listed", tools=(Tool(name="x"), Tool(name="y"))),
        "b": ServerTools(server="b", status="listed", tools=(Tool(name="z"),)),
    }
    permissions = PermissionFile.model_validate({"tools": {"a:x": {"approval": "auto"}, "b:*": {}}})
    assert [item.tool for item in proposals(servers, permissions)] == ["a:y"]


@given(st.dictionaries(NAMES, HINTS, min_size=1, max_size=8), NAMES)
def test_nothing_holds_until_a_person_takes_the_first_mark_away(
    tools: dict[str, ToolHints], why: str
) -> None:
    listed = tuple(Tool(name=name, hints=hints) for name, hints in tools.items())
    servers = {"s": ServerTools(server="s", status="listed", tools=listed)}
    found = proposals(servers, PermissionFile())
    text = draft_text(found, {"gone": why})

    assert PermissionFile.model_validate(yaml.safe_load(text)).tools == {}
    lines = text.split("\n")
    kept = [line.replace("  # ", "  ", 1) if line.startswith('  # "s:') else line for line in lines]
    entries = PermissionFile.model_validate(yaml.safe_load("\n".join(kept))).tools
    assert set(entries) == {item.tool for item in found}
    assert len(lines) == len(found) + 7
