"""A person's word is for one call: given, and for exactly what it was asked for."""

from __future__ import annotations

from dataclasses import replace

from pml.processors.workflow import Input
from pml.processors.workflow.consent import ANY_ARGUMENTS, given
from pml.processors.workflow.draft import Draft
from pml.processors.workflow.preparation import Prepared, prepare
from pml.processors.workflow.state import Approval
from pml.schemas.catalog import CatalogRecord, ServerTools
from pml.schemas.commands import Command, DeadlineReach
from tests.processors.session_world import COMMANDS, SessionWorld, data_of

COMMAND = Command(type="x", command_id="c", session_id="s1", data=DeadlineReach(kind="run", due_at_ms=0))


def test_a_call_may_begin_only_with_a_yes_to_its_arguments_and_its_definition() -> None:
    world = SessionWorld()
    world.start({"tasks": [{"id": "a", "tool": "files:delete_file", "arguments": {"path": "a.md"}}]})
    assert world.session is not None
    run = world.session.runs["run_1"]
    source = Input(COMMANDS, 0, 9, 0, "local", "s1", COMMAND)
    prepared = prepare(Draft(world.session, source, world.payloads, world.catalog, 0), run, run.node("a"))
    asked = run.task("a")
    assert isinstance(prepared, Prepared)
    assert asked.approval is not None
    word = replace(asked.approval, granted=True)
    own = replace(run, tasks={"a": replace(asked, approval=word)})
    before = replace(run, tasks={}, waits=replace(run.waits, consents={"a": word}))
    other = replace(run, tasks={}, waits=replace(run.waits, consents={"b": word}))
    assert [given(each, prepared) for each in (other, run, own, before)] == [False, False, True, True]
    assert not given(own, replace(prepared, arguments_hash="others"))
    assert not given(own, replace(prepared, granted=replace(prepared.granted, definition="delete-2")))
    assert given(run, replace(prepared, consent=None))


def test_a_yes_to_computed_arguments_is_for_any_of_this_definition_of_the_tool() -> None:
    world = SessionWorld()
    world.start({"tasks": [{"id": "a", "tool": "files:delete_file", "arguments": {"path": "a.md"}}]})
    run = world.session_run()
    source = Input(COMMANDS, 0, 9, 0, "local", "s1", COMMAND)
    prepared = prepare(Draft(world.session, source, world.payloads, world.catalog, 0), run, run.node("a"))
    assert isinstance(prepared, Prepared)
    word = Approval("apr_1", ANY_ARGUMENTS, prepared.granted.definition, 0, granted=True)
    by_tool = replace(run, waits=replace(run.waits, consents={"files:delete_file": word}))
    assert given(by_tool, prepared)
    assert given(by_tool, replace(prepared, arguments_hash="others"))
    assert not given(by_tool, replace(prepared, granted=replace(prepared.granted, definition="delete-2")))


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
