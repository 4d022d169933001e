"""`evolve` folds counted events in order, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from pml.processors.workflow import Catalog, Session, evolve
from pml.schemas.catalog import CatalogRecord
from pml.schemas.errors import LogCorrupted
from pml.schemas.events import Event, InternalEnded, SpeculationScored
from tests.processors.session_world import SessionWorld, catalog, data_of
from tests.processors.workflow.test_decide import FORK, READ, reference, speculating, task

READS = {"scope": "readonly", "approval": "auto"}


def log() -> list[Event]:
    world = SessionWorld()
    world.start({"tasks": [{"id": "a", "tool": "files:search"}]})
    world.answer(world.call_of("a"))
    return world.events


def test_a_log_that_begins_in_the_middle_has_a_gap() -> None:
    with pytest.raises(LogCorrupted, match="does not begin a session"):
        evolve(None, log()[1])


def folded(events: list[Event]) -> Session:
    session = evolve(None, events[0])
    for event in events[1:]:
        session = evolve(session, event)
    return session


def test_the_graph_of_a_run_is_not_built_while_nobody_looks_into_it(monkeypatch: pytest.MonkeyPatch) -> None:
    events = log()
    monkeypatch.setattr("pml.processors.workflow.graph.build", None)
    assert folded(events).runs["run_1"].status == "completed"


def followed_by(session: Session, like: Event, data: Any) -> Session:
    """The session after one more event of its run, which says this."""
    seq, offset = session.seq + 1, session.last_offset + 1
    update = {"seq": seq, "offset": offset, "type": data.TYPE, "data": data}
    return evolve(session, like.model_copy(update=update))


def test_a_life_begins_with_its_first_event() -> None:
    second = log()[1]
    with pytest.raises(LogCorrupted, match="does not begin a session"):
        evolve(None, second.model_copy(update={"epoch": second.offset}))


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


def test_a_read_that_begins_while_the_same_thing_is_written_is_not_kept() -> None:
    world = early_with_another_path()
    world.start({"tasks": [task("w", "b.md", tool="files:write_file")]}, "run_2")
    world.answer(world.call_of("slow"))
    assert cached(world, "late") is None


def test_what_may_not_be_cached_any_more_is_not_kept() -> None:
    world = early_with_another_path()
    uncacheable = {**READS, "touches": ["files:{path}"], "cacheable": False}
    world.catalog = giving(catalog({READ: uncacheable}), "file")
    world.answer(world.call_of("slow"))
    assert cached(world, "late") is None


def test_a_task_is_not_kept_for_what_began_early_in_another_run_under_its_name() -> None:
    world = early_with_another_path()
    world.start({"tasks": [task("late", "b.md")]}, "run_2")
    assert cached(world, "late") is None


def test_an_early_result_that_served_another_run_is_not_replaced() -> None:
    world = early_with_another_path()
    world.answer(world.call_of("late"), {"text": "a"})
    served = world.start({"tasks": [task("x", "a.md")]}, "run_2")
    assert data_of(served, "task.completed").served_by == "speculation"
    world.answer(world.call_of("slow"))
    assert cached(world, "late") is None


def cached(world: SessionWorld, task_id: str) -> bool | None:
    """Whether the result of a task's own call is kept."""
    real = [
        call.call_id for call in world.open_calls.values() if call.task_id == task_id and not call.speculative
    ]
    kept: bool | None = data_of(world.answer(real[0], {"text": "b"}), "task.completed").cached
    return kept


def test_a_write_may_begin_after_a_read_that_was_to_be_kept_has_failed() -> None:
    world = early_with_another_path()
    world.answer(world.call_of("slow"))
    real = next(call.call_id for call in world.open_calls.values() if call.arguments == {"path": "b.md"})
    world.answer(real, code="NOT_FOUND")
    step = world.start({"tasks": [task("w", "b.md", tool="files:write_file")]}, "run_2")
    assert [call.task_id for call in step.calls] == ["w"]


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


def test_a_task_that_could_not_begin_is_no_miss() -> None:
    world = speculating()
    assert world.session is not None
    world.lose(world.session.runs["run_1"].payload)
    step = world.answer(world.call_of("b"))
    assert data_of(step, "task.failed").speculable
    assert data_of(step, "run.failed").counts.misses == 0


def test_a_used_result_that_made_room_serves_nobody_any_more() -> None:
    world = speculating(SessionWorld(catalog=catalog(cache_bytes=40)))
    world.answer(world.call_of("c"), {"text": "three"})
    world.answer(world.call_of("b"))
    other = [task("a", "4"), task("b", "5"), task("c", reference("a.next"), "b")]
    world.start({"tasks": other}, "run_2")
    world.answer(world.call_of("a"), {"next": "6"})
    step = world.answer(world.call_of("c"), {"text": "seven"})
    assert [event.type for event in step.events] == ["speculation.forgotten", "speculation.ready"]
    again = world.start({"tasks": [task("x", "3")]}, "run_3")
    assert data_of(again, "task.started").served_by == "call"


def test_a_result_that_has_no_room_serves_whoever_joined_its_call_and_nobody_else() -> None:
    world = SessionWorld(catalog=catalog(cache_bytes=10))
    world.start({"tasks": [*FORK["tasks"], task("d", "4", "b", tool="files:parse")]})
    world.answer(world.call_of("a"), {"next": "3"})
    world.answer(world.call_of("b"))
    joined = world.answer(world.call_of("c"), {"text": "three"})
    assert [event.type for event in joined.events] == ["task.completed", "speculation.ended"]
    again = world.start({"tasks": [task("x", "3")]}, "run_2")
    assert data_of(again, "task.started").served_by == "call"


def test_a_write_ends_a_result_and_what_was_begun_with_it_once_each() -> None:
    world = SessionWorld(catalog=catalog(speculation_depth=2))
    deep = [task("a", "1"), task("b", "2"), task("c", reference("a.next"), "b")]
    world.start({"tasks": [*deep, task("d", reference("c.next"), "c")]})
    world.answer(world.call_of("a"), {"next": "3"})
    world.answer(world.call_of("c"), {"next": "3/x"})
    step = world.start({"tasks": [task("w", "3", tool="files:write_file")]}, "run_2")
    ended: list[Any] = [event.data for event in step.events if event.type == "speculation.ended"]
    assert [(item.task_id, item.reason) for item in ended] == [("c", "invalidated"), ("d", "invalidated")]


@pytest.mark.parametrize(("kind", "served"), [("speculation.ready", 0), ("speculation.ended", 1)])
def test_what_is_said_of_a_speculation_that_is_gone_is_counted_and_no_more(kind: str, served: int) -> None:
    """A log of an earlier release may go on about what this one lets go."""
    world = speculating()
    world.answer(world.call_of("c"), {"text": "three"})
    world.answer(world.call_of("b"))
    number = world.types().index(kind)
    event, before = world.events[number], folded(world.events[:number])
    gone = event.data.model_copy(update={"call_id": "call_gone"})
    after = followed_by(before, event, gone)
    assert after.speculations == before.speculations
    assert after.accounts.served == served


def scored(tool: str) -> SpeculationScored:
    return SpeculationScored(
        task_id="a",
        layer=0,
        tool=tool,
        kind="layer",
        confidence=1.0,
        threshold=0.0,
        success=True,
        reason="hit",
        shadow=True,
        tool_ms=5.0,
    )


def test_a_session_remembers_how_long_the_newest_64_tools_took() -> None:
    events = log()
    session = folded(events)
    for number in range(70):
        session = followed_by(session, events[-1], scored(f"files:t{number}"))
    session = followed_by(session, events[-1], scored("files:t6"))
    assert list(session.paces) == [*(f"files:t{number}" for number in range(7, 70)), "files:t6"]


def test_only_what_memory_answers_moves_a_confidence() -> None:
    """The server `pml` may have other tools."""
    events = log()
    answer = InternalEnded(call_id="call_1", tool="pml:other", answer={"x": 1}, error=None, duration_ms=1.0)
    assert followed_by(folded(events), events[-1], answer).influences == {}
