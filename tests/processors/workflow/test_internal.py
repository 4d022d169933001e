"""What is made of the answers of the server `pml`."""

from __future__ import annotations

from typing import Any

from pml.schemas.calls import CallEnded, CallError, ToolResult
from tests.processors.session_world import SessionWorld, catalog, data_of
from tests.processors.workflow.test_decide import READ, task


def broken(call_id: str, said: dict[str, Any]) -> CallEnded:
    """A call that failed and gave something all the same."""
    return CallEnded(
        call_id=call_id,
        tenant="local",
        session_id="s1",
        status="error",
        result=ToolResult(structured=said),
        error=CallError(code="TOOL_ERROR", message="it broke in the middle"),
        started_at="2023-11-14T22:13:20.000000Z",
    )


def asking(*tools: str) -> SessionWorld:
    """Memory is asked about tools whose tasks may be needed or not."""
    world = SessionWorld(catalog=catalog(memory_influence="on"))
    maybe = [{"node": "d", "outcome": "true"}]
    late = [task(f"n{number}", "2", "a", tool=tool, condition=maybe) for number, tool in enumerate(tools)]
    world.start({"tasks": [task("a", "1"), *late], "decisions": [{"id": "d", "expression": "a.x > 0"}]})
    return world


def test_tools_are_asked_about_in_one_order_wherever_it_is_decided() -> None:
    tools = ["files:list_dir", "files:parse", READ, "files:search", "files:write_file", "time:now", "web:get"]
    world = asking(*reversed(tools))
    assert world.open_calls[world.call_of("pml:recall")].arguments["tools"] == tools


def test_an_answer_is_awaited_until_its_own_deadline() -> None:
    world = asking(READ)
    assert not world.reach("internal", world.call_of("pml:recall"), world.time_ms).events
    ended = data_of(world.due(), "internal.ended")
    assert ended.error.code == "TIMEOUT"
    assert not world.reach("internal", ended.call_id, world.time_ms).events


def test_a_failed_answer_moves_no_confidence_whatever_comes_with_it() -> None:
    world = asking(READ)
    said: dict[str, Any] = {"tools": {"files:read_file": {"successes": 9, "failures": 1}}}
    ended = data_of(world.outcome(broken(world.call_of("pml:recall"), said)), "internal.ended")
    assert (ended.answer, ended.error.code) == (None, "TOOL_ERROR")
