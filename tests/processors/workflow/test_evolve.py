"""`evolve` folds counted events in order, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from pml.processors.workflow import Catalog, evolve
from pml.schemas.catalog import CatalogRecord
from pml.schemas.errors import LogCorrupted
from pml.schemas.events import Event
from tests.processors.session_world import SessionWorld, catalog, data_of
from tests.processors.workflow.test_decide import READ, reference, speculating, task

READS = {"scope": "readonly", "approval": "auto"}


def log() -> list[Event]:
    world = SessionWorld()
    world.start({"tasks": [{"id": "a", "tool": "files:search"}]})
    world.answer(world.call_of("a"))
    return world.events


def test_a_log_that_begins_in_the_middle_has_a_gap() -> None:
    with pytest.raises(LogCorrupted, match="does not begin a session"):
        evolve(None, log()[1])


def test_a_missing_event_is_a_gap() -> None:
    events = log()
    with pytest.raises(LogCorrupted, match="follows seq 0"):
        evolve(evolve(None, events[0]), events[2])


def test_an_event_twice_is_no_way_on() -> None:
    first = log()[0]
    with pytest.raises(LogCorrupted):
        evolve(evolve(None, first), first)


def test_another_life_begins_at_its_own_offset() -> None:
    first = log()[0]
    session = evolve(None, first)
    again = first.model_copy(update={"epoch": 500, "offset": 500})
    assert evolve(session, again).epoch == 500
    with pytest.raises(LogCorrupted):
        evolve(session, first.model_copy(update={"epoch": 500, "offset": 501}))


def test_an_event_of_a_run_nobody_started_is_an_error() -> None:
    events = log()
    session = evolve(None, events[0])
    with pytest.raises(LogCorrupted, match="names run run_9"):
        evolve(session, events[1].model_copy(update={"run_id": "run_9"}))


def giving(known: Catalog, name: str) -> Catalog:
    """The same, where a whole result of list_dir gives its field of this name as a path."""

    def schema(name: str) -> dict[str, Any]:
        return {"type": "object", "properties": {name: {"type": "string"}}}

    def described(tool: str) -> dict[str, Any]:
        if tool == "list_dir":
            return {"output_schema": schema(name)}
        return {"input_schema": schema("path")} if tool == "read_file" else {}

    server = known.servers["files"]
    tools = tuple(tool.model_copy(update=described(tool.name)) for tool in server.tools)
    data = server.model_copy(update={"tools": tools})
    return known.with_record(CatalogRecord(kind="tool", id="files", data=data))


def early_with_another_path(known: Catalog | None = None) -> SessionWorld:
    """`late` could run early with a.md; when its turn comes, it reads b.md."""
    world = SessionWorld(catalog=giving(known or catalog(), "location"))
    slow = {"id": "slow", "tool": "files:search"}
    late = task("late", reference("list"), "slow")
    world.start({"tasks": [task("list", "docs", tool="files:list_dir"), slow, late]})
    world.answer(world.call_of("list"), {"location": "a.md", "file": "b.md"})
    world.catalog = giving(world.catalog, "file")
    return world


@pytest.mark.parametrize(("path", "cached"), [("b.md", None), ("c.md", True)])
def test_a_read_is_kept_unless_a_write_of_the_same_thing_begins_meanwhile(
    path: str, cached: bool | None
) -> None:
    world = early_with_another_path()
    world.answer(world.call_of("slow"))
    world.start({"tasks": [task("w", path, tool="files:write_file")]}, "run_2")
    real = next(call.call_id for call in world.open_calls.values() if call.arguments == {"path": "b.md"})
    assert data_of(world.answer(real, {"text": "b"}), "task.completed").cached is cached


def test_what_served_a_task_gets_no_new_life_in_the_cache() -> None:
    world = early_with_another_path()
    other = [task("quick", "docs"), task("x", "x.md"), task("y", "b.md", "quick", "x")]
    world.start({"tasks": other}, "run_2")
    world.answer(world.call_of("quick"))
    world.answer(world.call_of("y"), {"text": "b"})
    completed = [
        event.data
        for event in world.answer(world.call_of("slow")).events
        if event.type == "task.completed" and event.data.task_id == "late"  # type: ignore[attr-defined]
    ]
    assert [(item.served_by, item.cached) for item in completed] == [("speculation", None)]  # type: ignore[attr-defined]


def test_a_result_that_the_cache_has_no_room_for_is_not_kept() -> None:
    world = early_with_another_path(catalog(cache_bytes=10))
    world.answer(world.call_of("slow"))
    real = next(call.call_id for call in world.open_calls.values() if call.arguments == {"path": "b.md"})
    assert data_of(world.answer(real, {"text": "b"}), "task.completed").cached is None


def test_the_result_of_a_write_is_never_kept() -> None:
    """Even where the tool only read when it was begun early, and its entry names nothing that it touches."""
    world = early_with_another_path(catalog({READ: {**READS, "touches": []}}))
    world.catalog = giving(catalog({READ: {**READS, "touches": [], "effect": "write"}}), "file")
    world.answer(world.call_of("slow"))
    real = next(call.call_id for call in world.open_calls.values() if call.effect == "write")
    assert data_of(world.answer(real, {"text": "b"}), "task.completed").cached is None


def test_a_used_result_is_forgotten_in_the_moment_it_expires() -> None:
    world = speculating()
    world.answer(world.call_of("c"), {"text": "three"})
    world.answer(world.call_of("b"))
    world.time_ms += 300_000
    world.start({"tasks": [task("x", "9")]}, "run_2")
    assert world.session is not None
    assert not world.session.speculations


def test_a_task_that_another_runs_result_served_is_no_miss() -> None:
    world = speculating(SessionWorld(catalog=catalog({READ: {**READS, "ttl_s": 1}})))
    world.answer(world.call_of("c"), {"text": "three"})
    world.time_ms += 2_000
    world.start({"tasks": [task("x", "8"), task("y", "9"), task("z", "3", "x", "y")]}, "run_2")
    world.answer(world.call_of("x"))
    world.answer(world.call_of("z"), {"text": "three"})
    world.answer(world.call_of("y"))
    step = world.answer(world.call_of("b"))
    assert data_of(step, "task.started").served_by == "repeat"
    assert data_of(step, "run.completed").counts.misses == 0
