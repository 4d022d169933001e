"""What is made of the answers of the server `pml`."""

from __future__ import annotations

from typing import Any

from pml.schemas.calls import CallEnded, CallError, ToolResult
from tests.processors.session_world import SessionWorld, catalog, data_of
from tests.processors.workflow.test_decide import task


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


def test_a_failed_answer_moves_no_confidence_whatever_comes_with_it() -> None:
    world = SessionWorld(catalog=catalog(memory_influence="on"))
    late = task("b", "2", "a", condition=[{"node": "d", "outcome": "true"}])
    world.start({"tasks": [task("a", "1"), late], "decisions": [{"id": "d", "expression": "a.x > 0"}]})
    said: dict[str, Any] = {"tools": {"files:read_file": {"successes": 9, "failures": 1}}}
    ended = data_of(world.outcome(broken(world.call_of("pml:recall"), said)), "internal.ended")
    assert (ended.answer, ended.error.code) == (None, "TOOL_ERROR")
