"""A person's word is for one call: given, and for exactly what it was asked for."""

from __future__ import annotations

from dataclasses import replace

from pml.processors.workflow import Input
from pml.processors.workflow.consent import given
from pml.processors.workflow.draft import Draft
from pml.processors.workflow.preparation import Prepared, prepare
from pml.schemas.catalog import CatalogRecord, ServerTools
from pml.schemas.commands import Command, DeadlineReach
from tests.processors.session_world import COMMANDS, SessionWorld, data_of


def test_a_call_may_begin_only_with_a_yes_to_its_arguments_and_its_definition() -> None:
    world = SessionWorld()
    world.start({"tasks": [{"id": "a", "tool": "files:delete_file", "arguments": {"path": "a.md"}}]})
    assert world.session is not None
    run = world.session.runs["run_1"]
    command = Command(type="x", command_id="c", session_id="s1", data=DeadlineReach(kind="run", due_at_ms=0))
    source = Input(COMMANDS, 0, 9, 0, "local", "s1", command)
    prepared = prepare(Draft(world.session, source, world.payloads, world.catalog, 0), run, run.node("a"))
    asked = run.task("a")
    assert isinstance(prepared, Prepared)
    assert asked.approval is not None
    allowed = replace(asked, approval=replace(asked.approval, granted=True))
    assert [given(task, prepared) for task in (run.task("b"), asked, allowed)] == [False, False, True]
    assert not given(allowed, replace(prepared, arguments_hash="others"))
    assert not given(allowed, replace(prepared, granted=replace(prepared.granted, definition="delete-2")))
    assert given(run.task("b"), replace(prepared, consent=None))


def test_a_person_is_told_what_the_server_says_of_the_tool() -> None:
    world = SessionWorld()
    listed = world.catalog.servers["files"]
    tools = tuple(item.model_copy(update={"description": f"Does {item.name}."}) for item in listed.tools)
    record = CatalogRecord(kind="tool", id="files", data=listed.model_copy(update={"tools": tools}))
    world.catalog = world.catalog.with_record(record)
    step = world.start({"tasks": [{"id": "a", "tool": "files:delete_file"}]})
    assert data_of(step, "approval.requested").description == "Does delete_file."


def test_a_tool_that_no_server_listed_has_no_description() -> None:
    world = SessionWorld()
    away = ServerTools(server="disk", status="unavailable", error="it does not start")
    world.catalog = world.catalog.with_record(CatalogRecord(kind="tool", id="disk", data=away))
    asked = data_of(world.start({"tasks": [{"id": "a", "tool": "disk:erase"}]}), "approval.requested")
    assert (asked.code, asked.description) == ("TOOL_NOT_APPROVED", "")
