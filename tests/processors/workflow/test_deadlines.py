"""Which deadline of a session comes next."""

from __future__ import annotations

from pml.processors.workflow import Input, deadline, fail_too_large
from pml.schemas.calls import CallEnded
from tests.processors.session_world import OUTCOMES, SessionWorld, catalog, data_of
from tests.processors.workflow.test_decide import task
from tests.processors.workflow.test_reached import waiting_for_a_retry


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


def test_a_retry_that_will_not_come_is_not_due_any_more() -> None:
    """Its task was skipped when the run was stopped, which waits for its write."""
    world = waiting_for_a_retry(task("w", "2", tool="files:write_file"))
    assert world.session is not None
    before = deadline(world.session)
    assert before is not None
    assert (before.kind, before.target) == ("retry", "a")
    world.send("run.abort")
    after = deadline(world.session)
    assert after is not None
    assert (after.kind, after.target) == ("task", "w")


def test_a_run_that_failed_for_what_does_not_fit_waits_for_nothing() -> None:
    world = waiting_for_a_retry(task("w", "2", tool="files:write_file"))
    assert world.session is not None
    outcome = CallEnded(call_id=world.call_of("w"), tenant="local", session_id="s1", status="error")
    source = Input(OUTCOMES, 3, 99, world.time_ms, "local", "s1", outcome)
    world.take(fail_too_large(world.session, source, world.catalog, world.log_end))
    assert world.types()[-1] == "run.failed"
    assert deadline(world.session) is None
