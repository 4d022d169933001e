"""A call is made only with everything that it needs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pml.schemas.canonical import NESTING_MAX
from pml.schemas.catalog import CatalogRecord, ServerTools
from tests.processors.session_world import SessionWorld, catalog, data_of
from tests.processors.workflow.test_decide import FORK, READ, reference, task
from tests.processors.workflow.test_inquiries import describe

NAMES = ("epsilon", "beta", "delta", "alpha", "zeta", "gamma")


def unlist(world: SessionWorld, tool: str) -> None:
    """The server has this tool no more."""
    server = world.catalog.servers["files"]
    data = server.model_copy(update={"tools": tuple(item for item in server.tools if item.name != tool)})
    world.catalog = world.catalog.with_record(CatalogRecord(kind="tool", id="files", data=data))


def test_of_a_tool_that_is_not_listed_every_argument_is_required() -> None:
    world = SessionWorld()
    world.start({"tasks": [task("a", "1", tool="files:parse"), task("b", reference("a.gone"))]})
    unlist(world, "read_file")
    failed = data_of(world.answer(world.call_of("a"), {"text": "x"}), "task.failed")
    assert (failed.task_id, failed.error.code) == ("b", "UNRESOLVED_ARGUMENT")


def test_of_a_tool_that_is_not_listed_nothing_more_is_required_than_what_is_written() -> None:
    world = SessionWorld()
    world.start({"tasks": [task("a", "1", tool="files:parse"), task("b", "2", "a")]})
    unlist(world, "read_file")
    assert data_of(world.answer(world.call_of("a"), {"text": "x"}), "task.started").task_id == "b"


def test_a_tool_that_is_listed_no_more_is_not_called_early() -> None:
    world = SessionWorld()
    world.start(FORK)
    unlist(world, "read_file")
    step = world.answer(world.call_of("a"), {"next": "3"})
    assert [event.type for event in step.events] == ["task.completed"]


def test_what_a_tool_comes_to_require_while_it_is_called_changes_nothing() -> None:
    world = SessionWorld()
    note = {"arguments": {"path": "2", "note": reference("a.note")}}
    world.start({"tasks": [task("a", "1"), task("b", "2") | note]})
    assert data_of(world.answer(world.call_of("a")), "task.started").omitted == ("note",)
    describe(world, "read_file", input_schema={"required": ["path", "note"]})
    assert data_of(world.answer(world.call_of("b")), "task.completed").arguments == {"path": "2"}


def test_what_a_schema_requires_and_is_no_name_counts_for_nothing() -> None:
    world = SessionWorld()
    describe(world, "read_file", input_schema={"required": ["path", {"lines": 3}, 7]})
    world.start(FORK)
    assert data_of(world.answer(world.call_of("a"), {"next": "3"}), "speculation.started").task_id == "c"


def test_arguments_that_nobody_wrote_are_named_in_one_order_wherever_it_is_decided() -> None:
    world = SessionWorld()
    late = task("late", "3", "a", "b")
    describe(world, "read_file", input_schema={"required": [*NAMES, "path"]})
    world.start({"tasks": [task("a", "1", tool="files:parse"), task("b", "2", tool="files:parse"), late]})
    reason = data_of(world.answer(world.call_of("a")), "speculation.unresolvable").reason
    assert [word.rstrip(":") for word in reason.split() if word.rstrip(":") in NAMES] == sorted(NAMES)


def test_of_several_results_that_are_gone_the_same_one_is_named_wherever_it_is_decided() -> None:
    world = SessionWorld(catalog=catalog(speculation_mode="off"))
    late = {
        "id": "late",
        "tool": "files:parse",
        "arguments": {name: reference(f"{name}.x") for name in NAMES},
    }
    world.start(
        {
            "tasks": [
                *(task(name, name) for name in NAMES),
                {**late, "depends_on": ["last"]},
                task("last", "9"),
            ]
        }
    )
    for name in NAMES:
        world.answer(world.call_of(name), {"x": 1})
    assert world.session is not None
    results = {name: world.session.runs["run_1"].task(name).result for name in NAMES}
    for result in results.values():
        assert result is not None
        world.lose(result)
    error = data_of(world.answer(world.call_of("last")), "task.failed").error
    assert error.code == "PAYLOAD_GONE"
    assert "/".join(map(str, results["alpha"] or ())) in error.message


def test_a_tool_that_changed_since_it_was_approved_is_not_run_early() -> None:
    entry = {"scope": "readonly", "approval": "auto", "definition": "read_file-0"}
    world = SessionWorld()
    world.start(FORK)
    world.catalog = replace(world.catalog, permissions=catalog({READ: entry}).permissions)
    step = world.answer(world.call_of("a"), {"next": "3"})
    assert [event.type for event in step.events] == ["task.completed"]


def test_arguments_from_a_waiting_result_that_is_gone_are_not_told_in_part() -> None:
    world = SessionWorld(catalog=catalog(speculation_depth=2))
    early, deep = task("early", reference("quick.next"), "slow"), task("deep", reference("early.next"))
    world.start({"tasks": [task("quick", "1"), task("slow", "2"), early, deep]})
    world.answer(world.call_of("quick"), {"next": "3"})
    world.answer(world.call_of("early"), {"next": "4"})
    assert world.session is not None
    waiting = next(entry.result for entry in world.session.speculations.values() if entry.result)
    world.lose(waiting)
    step = world.answer(world.call_of("deep"), code="NOT_FOUND")
    assert data_of(step, "speculation.ended").arguments is None


def test_a_call_is_as_alone_as_its_server_says() -> None:
    world = SessionWorld()
    files = world.catalog.servers["files"].model_copy(update={"isolation": "session"})
    world.catalog = world.catalog.with_record(CatalogRecord(kind="tool", id="files", data=files))
    (call,) = world.start({"tasks": [task("a", "1"), task("b", "2", "a")]}).calls
    assert call.isolation == "session"
    world.catalog = world.catalog.without(ServerTools.KIND, "files")
    (call,) = world.answer(call.call_id).calls
    assert call.isolation == "shared", "nobody says anything of a server that is gone"


def test_arguments_too_deep_for_a_record_fail_their_task_and_nothing_else() -> None:
    deep: Any = 1
    for _ in range(NESTING_MAX):
        deep = [deep]
    world = SessionWorld()
    arguments = {"path": "a.md", "deep": {"type": "literal", "value": deep}}
    step = world.start({"tasks": [{"id": "n1", "tool": "files:read_file", "arguments": arguments}]})
    assert data_of(step, "task.failed").error.code == "ARGUMENTS_TOO_DEEP"
    assert (step.events[-1].type, step.calls) == ("run.failed", ())
