"""What begins with a layer, and with whose word."""

from __future__ import annotations

from tests.processors.session_world import SessionWorld, catalog, data_of
from tests.processors.workflow.test_decide import task

DELETE = {"scope": "filesystem", "approval": "hil", "idempotent": True, "retryable": True}


def test_a_call_that_needs_nobodys_word_any_more_does_not_name_one() -> None:
    world = SessionWorld(catalog=catalog({"files:delete_file": DELETE}))
    asked = data_of(world.start({"tasks": [task("a", "1", tool="files:delete_file")]}), "approval.requested")
    word = {"approval_id": asked.approval_id, "decision": "approve"}
    world.send("approval.decide", data=word)
    world.answer(world.call_of("a"), code="NETWORK", retryable=True)
    world.catalog = catalog({"files:delete_file": {**DELETE, "approval": "auto"}})
    started = [
        event.data.approval_id
        for event in [*world.events, *world.due().events]
        if event.type == "task.started"
    ]  # type: ignore[attr-defined]
    assert started[0] == asked.approval_id
    assert started[-1] is None
