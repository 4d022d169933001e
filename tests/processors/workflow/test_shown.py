"""What a person is shown of the calls of a run that has not begun."""

from __future__ import annotations

from typing import Any

from pml.processors.workflow.shown import SHOWN_BYTES_MAX
from pml.schemas.codec import encode
from tests.processors.session_world import SessionWorld, catalog, data_of


def asked_about(*tasks: dict[str, Any], context: dict[str, Any] | None = None, **permissions: Any) -> Any:
    """The request about these tasks, which all follow on n1."""
    at = SessionWorld(catalog=catalog(permissions, approve="before"))
    first = {"id": "n1", "tool": "files:list_dir", "arguments": {"path": "docs"}}
    return data_of(at.start({"tasks": [first, *tasks]}, context=context or {}), "approval.requested")


def delete(name: str, **arguments: Any) -> dict[str, Any]:
    return {"id": name, "tool": "files:delete_file", "arguments": arguments}


def test_what_comes_from_a_result_is_told_by_where_it_comes_from_and_the_rest_is_shown() -> None:
    read = {"type": "reference", "expression": "n1.first"}
    asked = asked_about(
        delete(
            "n2",
            path=read,
            where={"type": "parameter", "parameter_name": "folder"},
            many={"type": "list_of", "items": ["x", read]},
            more={"type": "expression", "expression": "n1.size + 1", "code": "found.size + 1"},
            token="hunter2",
        ),
        context={"folder": "docs"},
    )
    (call,) = asked.calls
    assert call.arguments == {"where": "docs", "token": "[REDACTED]"}
    assert call.computed == {"path": "n1.first", "many": "n1", "more": "found.size + 1"}
    assert call.arguments_hash is None


def test_several_calls_are_one_request() -> None:
    web = {"id": "n3", "tool": "web:secret", "arguments": {}}
    asked = asked_about(delete("n2", path="a.md"), web)
    assert [(call.task_id, call.code) for call in asked.calls] == [
        ("n2", "APPROVAL_REQUIRED"),
        ("n3", "TOOL_NOT_APPROVED"),
    ]
    assert (asked.task_id, asked.tool, asked.arguments) == ("", "", None)
    assert (asked.effect, asked.touches) == ("write", ("files:", "web:"))
    assert asked.message == "2 calls need a person's approval"


def test_a_call_that_cannot_be_made_is_not_asked_about() -> None:
    lost = delete("n3", path={"type": "expression", "expression": "args.no + 1", "code": "no + 1"})
    assert [call.task_id for call in asked_about(delete("n2", path="a.md"), lost).calls] == ["n2"]


def test_a_read_that_needs_a_word_is_shown_as_one() -> None:
    entry = {"scope": "readonly", "approval": "hil", "touches": ["files:{path}"]}
    asked = asked_about(
        {"id": "n2", "tool": "files:read_file", "arguments": {"path": "a.md"}}, **{"files:read_file": entry}
    )
    assert (asked.calls[0].effect, asked.calls[0].touches) == ("read", ("files:a.md",))


def test_what_has_no_room_is_left_for_its_turn() -> None:
    text = {"type": "parameter", "parameter_name": "text"}
    tasks = [delete(f"n{number}", path=f"{number}.md", text=text) for number in range(10, 68)]
    asked = asked_about(*tasks, context={"text": "x" * 9_000})
    assert len(encode(asked)) < 2 * SHOWN_BYTES_MAX
    assert len(asked.calls) + asked.omitted == 58
    assert len(asked.calls) == SHOWN_BYTES_MAX // len(encode(asked.calls[0]))
