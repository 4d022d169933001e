"""What begins with a layer, and with whose word."""

from __future__ import annotations

from pml.processors.workflow import Catalog
from pml.schemas.catalog import CatalogRecord, ServerTools
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


def test_what_a_tool_answered_before_it_was_defined_anew_serves_nobody() -> None:
    world = SessionWorld()
    world.start({"tasks": [task("a", "1"), task("slow", "2"), task("b", "3", "slow")]})
    world.answer(world.call_of("a"), {})
    early = world.call_of("b")
    world.answer(early, {"text": "as it was"})
    world.catalog = redefined(world.catalog, "read_file-2")
    started = data_of(world.answer(world.call_of("slow"), {}), "task.started")
    assert (started.task_id, started.call_id in world.open_calls) == ("b", True)
    assert started.call_id != early


def redefined(known: Catalog, definition: str) -> Catalog:
    """The same catalog, where the server says something else of `read_file`."""
    tools = tuple(
        tool.model_copy(update={"definition": definition}) if tool.name == "read_file" else tool
        for tool in known.servers["files"].tools
    )
    data = ServerTools(server="files", status="listed", tools=tools)
    return known.with_record(CatalogRecord(kind="tool", id="files", data=data))
