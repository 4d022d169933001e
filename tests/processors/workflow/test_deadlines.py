"""Which deadline of a session comes next."""

from __future__ import annotations

from pml.processors.workflow import deadline
from tests.processors.session_world import SessionWorld, catalog, data_of


def test_a_question_that_was_answered_is_not_due_any_more() -> None:
    """Else its deadline, which changes nothing now, would be said again and again."""
    world = SessionWorld(catalog=catalog(approval_timeout_ms=1_000))
    step = world.start({"tasks": [{"id": "a", "tool": "files:delete_file", "arguments": {"path": "a.md"}}]})
    asked = data_of(step, "approval.requested").approval_id
    assert world.session is not None
    before = deadline(world.session)
    assert before is not None
    assert (before.kind, before.target, before.due_at_ms) == ("approval", asked, world.time_ms + 1_000)
    world.send("approval.decide", data={"approval_id": asked, "decision": "approve"})
    after = deadline(world.session)
    assert after is not None
    assert (after.kind, after.target) == ("task", "a")
