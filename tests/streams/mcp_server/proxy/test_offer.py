"""Which tools of the catalog are offered, and as what."""

from __future__ import annotations

from typing import Any

import mcp_types as types

from pml.schemas.catalog import ServerTools, Tool
from pml.schemas.permissions import PermissionFile
from pml.streams.bridge.listing import catalog_tool, definition
from pml.streams.mcp_server.proxy.earlier import answer_before_2026, tool_before_2026
from pml.streams.mcp_server.proxy.instructions import instructions_for
from pml.streams.mcp_server.proxy.offer import offer_of

OBJECT: dict[str, Any] = {"type": "object"}
ENTRIES: dict[str, Any] = {
    "git:log": {"scope": "readonly", "approval": "auto"},
    "git:push": {"scope": "network-api", "approval": "hil"},
    "git:changed": {"scope": "readonly", "approval": "auto", "definition": "0" * 64},
}
TOOLS = tuple(
    Tool(name=name, input_schema=OBJECT, definition="1" * 64)
    for name in ("log", "push", "changed", "unnamed")
)
SERVERS = {"git": ServerTools(server="git", status="listed", tools=TOOLS)}


def test_what_is_allowed_or_asks_a_person_is_listed_and_the_rest_says_why_not() -> None:
    offer = offer_of(SERVERS, PermissionFile.model_validate({"tools": ENTRIES}), set())

    assert set(offer.listed) == {"git__log", "git__push"}
    assert offer.tools["git__unnamed"] == "git:unnamed"
    assert set(offer.refusals) == {"git__changed", "git__unnamed"}
    assert "pml tools approve git:unnamed" in offer.refusals["git__unnamed"].message
    assert "changed since it was approved" in offer.refusals["git__changed"].message


def test_a_tool_is_listed_as_its_server_lists_it() -> None:
    own = types.Tool(
        name="log",
        title="History",
        description="What happened.",
        input_schema={**OBJECT, "properties": {"n": {"type": "integer"}}},
        output_schema=OBJECT,
        annotations=types.ToolAnnotations(title="Log", read_only_hint=True, destructive_hint=False),
    )
    servers = {"git": ServerTools(server="git", status="listed", tools=(catalog_tool(own),))}
    offer = offer_of(servers, PermissionFile.model_validate({"tools": ENTRIES}), set())

    assert offer.listed["git__log"] == own.model_copy(update={"name": "git__log"})
    assert definition(own) == servers["git"].tools[0].definition


def test_a_tool_that_says_nothing_of_itself_has_no_hints() -> None:
    tool = offer_of(SERVERS, PermissionFile.model_validate({"tools": ENTRIES}), set()).listed["git__log"]

    assert (tool.title, tool.description, tool.annotations) == (None, None, None)


def test_earlier_clients_are_told_of_objects_alone() -> None:
    new = types.Tool(name="a", input_schema={"anyOf": [OBJECT]}, output_schema={"type": "array"})
    told = tool_before_2026(new)
    assert (told.input_schema, told.output_schema) == ({"anyOf": [OBJECT], "type": "object"}, None)
    plain = types.Tool(name="a", input_schema=OBJECT, output_schema=OBJECT)
    assert tool_before_2026(plain) is plain
    for given, expected in (([1], {"result": [1]}), ({"a": 1}, {"a": 1}), (None, None)):
        answer = types.CallToolResult(content=[], structured_content=given)
        assert answer_before_2026(answer).structured_content == expected


def test_a_model_is_told_of_the_tools_that_it_sees() -> None:
    assert "pml_execute" not in instructions_for("proxy")
    assert "<server>__<tool>" not in instructions_for("pml")
    assert {"pml_execute", "<server>__<tool>"} <= set(instructions_for("both").replace("`", " ").split())
