"""What begins with a layer, and with whose word."""

from __future__ import annotations

from typing import Any

import pytest

from pml.processors.workflow import Catalog
from pml.schemas.catalog import CatalogRecord, ServerTools
from tests.processors.session_world import SessionWorld, catalog, data_of
from tests.processors.workflow.test_decide import FORK, READ, reference, speculating, task

DELETE = {"scope": "filesystem", "approval": "hil", "idempotent": True, "retryable": True}


def test_a_call_that_needs_nobodys_word_any_more_does_not_name_one() -> None:
    world = SessionWorld(catalog=catalog({"files:delete_file": DELETE}))
    asked = data_of(world.start({"tasks": [task("a", "1", tool="files:delete_file")]}), "approval.requested")
    word = {"approval_id": asked.approval_id, "decision": "approve"}
    world.send("approval.decide", data=word)
    world.answer(world.call_of("a"), code="NETWORK", retryable=True)
    world.catalog = catalog({"files:delete_file": {**DELETE, "approval": "auto"}})
    step = world.due()
    started: list[Any] = [event.data for event in world.of_type("task.started")]
    assert [data.approval_id for data in started] == [asked.approval_id, None]
    assert [call.approval_id for call in step.calls] == [None]


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


def redefined(known: Catalog, definition: str, name: str = "read_file") -> Catalog:
    """The same catalog, where the server says something else of one of its tools."""
    tools = tuple(
        tool.model_copy(update={"definition": definition}) if tool.name == name else tool
        for tool in known.servers["files"].tools
    )
    data = ServerTools(server="files", status="listed", tools=tools)
    return known.with_record(CatalogRecord(kind="tool", id="files", data=data))


def test_the_result_of_one_tool_serves_no_other_however_alike_they_are_defined() -> None:
    world = SessionWorld()
    for name in ("read_file", "list_dir"):
        world.catalog = redefined(world.catalog, "the same", name)
    world.start({"tasks": [task("a", "1"), task("slow", "2"), task("b", "3", "slow")]})
    world.answer(world.call_of("a"))
    world.answer(world.call_of("b"), {"text": "three"})
    step = world.start({"tasks": [task("x", "3", tool="files:list_dir")]}, "run_2")
    assert data_of(step, "task.started").served_by == "call"


@pytest.mark.parametrize("mode", ["off", "shadow"])
@pytest.mark.parametrize("answered", [True, False])
def test_a_run_that_wants_nothing_early_uses_no_early_call_of_another_run(mode: str, answered: bool) -> None:
    world = speculating()
    if answered:
        world.answer(world.call_of("c"), {"text": "three"})
    step = world.start({"tasks": [task("x", "3")], "options": {"speculation": mode}}, "run_2")
    assert data_of(step, "task.started").served_by == "call"


@pytest.mark.parametrize(
    ("entry", "waited_ms", "served_by"),
    [
        ({"ttl_s": 1}, 999, "joined"),
        ({"ttl_s": 1}, 1_000, "call"),
        ({"shared": True}, 1_000, "joined"),
    ],
)
def test_a_call_that_runs_is_joined_while_its_result_would_be_fresh_or_where_none_is_kept(
    entry: dict[str, Any], waited_ms: int, served_by: str
) -> None:
    read = {"scope": "readonly", "approval": "auto", **entry}
    world = speculating(SessionWorld(catalog=catalog({READ: read})))
    world.time_ms += waited_ms
    assert data_of(world.answer(world.call_of("b")), "task.started").served_by == served_by


NEVER_EARLY: list[dict[str, Any]] = [
    {"cacheable": False},
    {"approval": "hil"},
    {"effect": "write"},
    {"open_world": True},
]


@pytest.mark.parametrize(
    ("entry", "option", "mode", "eligible"),
    [
        ({}, "on", "on", True),
        ({}, "off", "on", None),
        ({}, "shadow", "on", None),
        ({}, "on", "off", None),
        ({}, "on", "shadow", None),
        *((entry, "on", "on", None) for entry in NEVER_EARLY),
        ({"open_world": True, "speculate_open_world": True}, "on", "on", True),
    ],
)
def test_a_call_is_told_to_be_one_that_could_run_early(
    entry: dict[str, Any], option: str, mode: Any, eligible: bool | None
) -> None:
    """Later than in the first layer, of a run and a tool for which anything may, and not a person's."""
    read = {"scope": "readonly", "approval": "auto", **entry}
    world = SessionWorld(catalog=catalog({"files:search": read}, speculation_mode=mode))
    late = task("c", reference("a.next"), tool="files:search")
    first = task("a", "1", tool="files:parse")
    world.start({"tasks": [first, late], "options": {"speculation": option}})
    world.answer(world.call_of("a"), {"next": "3"})
    if entry.get("approval"):
        word = {"approval_id": world.of_type("approval.requested")[0].data.approval_id, "decision": "approve"}  # type: ignore[attr-defined]
        world.send("approval.decide", data=word)
    started = [event.data for event in world.of_type("task.started")]
    assert [(item.task_id, item.eligible) for item in started] == [("a", None), ("c", eligible)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("tool", [READ, "files:write_file"])
@pytest.mark.parametrize("idempotent", [None, True, False])
def test_only_what_may_be_repeated_is_tried_again(tool: str, idempotent: bool | None) -> None:
    """A read, unless the operator says that it may not; a write, only where the operator says that it may."""
    entry = {"scope": "readonly" if tool == READ else "filesystem", "approval": "auto", "retryable": True}
    world = SessionWorld(catalog=catalog({tool: entry | {"idempotent": idempotent}}))
    world.start({"tasks": [task("a", "1", tool=tool)]})
    step = world.answer(world.call_of("a"), code="NETWORK", retryable=True)
    again = tool == READ if idempotent is None else idempotent
    assert data_of(step, "task.failed").final is not again


def test_a_task_behind_several_failures_names_the_first_of_them() -> None:
    """By name, never in the order of a set, which differs from process to process."""
    world = SessionWorld()
    names = [f"n{number}" for number in range(8)]
    last = task("last", "9", *reversed(names))
    world.start({"tasks": [*(task(name, name, tool="time:now") for name in names), last]})
    for name in reversed(names):
        step = world.answer(world.call_of(name), code="NOT_FOUND")
    assert data_of(step, "task.skipped").because == "n0"


@pytest.mark.parametrize("lost", [True, False])
def test_what_was_begun_early_for_a_task_that_cannot_run_ends_with_its_turn(lost: bool) -> None:
    """Its argument is lost, or what it waits for fails; the run goes on, and nobody would use the result."""
    world = SessionWorld()
    more = [task("o", "8"), task("d", "9", "o")]
    world.start({"tasks": [*FORK["tasks"], *more]})
    world.answer(world.call_of("a"), {"next": "3"})
    early = world.call_of("c")
    world.answer(early, {"text": "three"})
    world.answer(world.call_of("o"))
    assert world.session is not None
    result = world.session.runs["run_1"].task("a").result
    assert result is not None
    if lost:
        world.lose(result)
    step = world.answer(world.call_of("b"), **({} if lost else {"code": "NOT_FOUND"}))
    ended = next(event.data for event in step.events if event.type == "speculation.ended")
    assert (ended.task_id, ended.fate, ended.reason) == ("c", "discarded", "unused")  # type: ignore[attr-defined]
    assert world.session.live


def test_the_reads_of_a_layer_begin_before_its_writes() -> None:
    """Whatever the order in the workflow, they see what was there before."""
    world = SessionWorld()
    step = world.start({"tasks": [task("w", "1", tool="files:write_file"), task("r", "1")]})
    assert [call.task_id for call in step.calls] == ["r", "w"]


def test_the_default_branch_is_taken_where_an_outcome_has_no_branch_of_its_own() -> None:
    """Also where that is true or false, which are told as they are."""
    for count, begun in ((1, "other"), (0, "none")):
        world = SessionWorld()
        branches = [
            task(name, "1", condition=[{"node": "d", "outcome": outcome}])
            for name, outcome in (("none", "false"), ("other", "case:default"))
        ]
        decisions = [{"id": "d", "expression": "m.count > 0"}]
        world.start({"tasks": [task("m", "9"), *branches], "decisions": decisions})
        step = world.answer(world.call_of("m"), {"count": count})
        assert [call.task_id for call in step.calls] == [begun]
