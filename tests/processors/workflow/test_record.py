"""State as bytes: small, complete, and of a version that is known."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from pml.processors.workflow import MissingDefinition, decode_session, encode_session, evolve
from pml.processors.workflow.state import NO_WAITS, UNNAMED
from pml.schemas.errors import LogCorrupted
from tests.processors.session_world import SessionWorld

NOTHING: dict[str, bytes] = {}


def wide(count: int) -> dict[str, Any]:
    tasks = [
        {"id": f"n{i}", "tool": "files:read_file", "arguments": {"path": f"docs/{i}.md"}}
        for i in range(count)
    ]
    return {"tasks": [*tasks, {"id": "last", "tool": "files:search", "depends_on": ["n0"]}]}


def test_a_session_takes_a_kilobyte_and_a_hundred_bytes_a_task() -> None:
    world = SessionWorld(checked_every=100)
    world.start(wide(150))
    for call_id in list(world.open_calls):
        world.answer(call_id, {"text": "x"})
    assert world.session is not None
    assert world.session.live
    assert len(encode_session(world.session)) < 1_024 + 151 * 100


def test_a_run_that_has_ended_takes_little() -> None:
    world = SessionWorld()
    for number in range(20):
        world.start(wide(2), f"run_{number}")
        while world.open_calls:
            world.answer(next(iter(world.open_calls)))
    assert world.session is not None
    assert not world.session.live
    assert len(encode_session(world.session)) < 1_024 + 20 * 250


def test_a_definition_that_is_not_at_hand_is_named() -> None:
    world = SessionWorld()
    world.start(wide(1))
    assert world.session is not None
    assert decode_session(encode_session(world.session), NOTHING.get) == MissingDefinition("run_1")


def test_a_run_that_has_ended_needs_no_definition() -> None:
    world = SessionWorld()
    world.start({"tasks": [{"id": "a", "tool": "files:parse"}]})
    world.answer(world.call_of("a"))
    assert world.session is not None
    assert decode_session(encode_session(world.session), NOTHING.get) == world.session


def test_what_is_written_after_any_event_is_read_as_it_was() -> None:
    """A chunk may end anywhere, also before the first task of a run has begun."""
    world = SessionWorld()
    world.start(wide(1))
    for task_id in ("n0", "last"):
        world.answer(world.call_of(task_id))
    state = None

    for event in world.events:
        state = evolve(state, event)
        assert decode_session(encode_session(state), world.definitions.get) == state, event.type


@pytest.mark.parametrize("version", [0, 2, None])
def test_a_record_of_another_release_stops_the_role(version: int | None) -> None:
    world = SessionWorld()
    world.start(wide(1))
    assert world.session is not None
    other = {**orjson.loads(encode_session(world.session)), "v": version}
    with pytest.raises(LogCorrupted, match="upgrade PML"):
        decode_session(orjson.dumps(other), world.definitions.get)
    stored = {"run_1": orjson.dumps({**orjson.loads(world.definitions["run_1"]), "v": version})}
    with pytest.raises(LogCorrupted, match="upgrade PML"):
        decode_session(encode_session(world.session), stored.get)


def test_a_run_of_an_older_record_is_of_the_default_type_and_domain() -> None:
    world = SessionWorld()
    world.start({**wide(1), "workflow_type": "audit"}, context={"domain": "web"})
    assert world.session is not None
    record = orjson.loads(encode_session(world.session))
    assert record["runs"][0][16:18] == ["audit", "web"]
    record["runs"][0] = record["runs"][0][:16]
    older = decode_session(orjson.dumps(record), world.definitions.get)
    assert not isinstance(older, MissingDefinition)
    run = older.runs["run_1"]
    assert (run.workflow_type, run.domain) == ("default", "default")


def record(world: SessionWorld) -> dict[str, Any]:
    assert world.session is not None
    found: dict[str, Any] = orjson.loads(encode_session(world.session))
    return found


def test_a_run_of_before_types_pauses_and_plans_is_read() -> None:
    """Rows grow at their end: 16 fields first, then the type, the domain, what few runs have."""
    world = SessionWorld()
    typed = {"workflow_type": "deploy", "tasks": [{"id": "a", "tool": "files:parse"}]}
    world.start(typed, context={"domain": "docs"})
    assert world.session is not None
    stored = record(world)
    whole = [*stored["runs"][0], None, {}]
    read = []
    for length in (16, 17, 18, 19, 20):
        stored["runs"] = [whole[:length]]
        found = decode_session(orjson.dumps(stored), world.definitions.get)
        assert not isinstance(found, MissingDefinition)
        run = found.runs["run_1"]
        assert (run.waits, run.replans, run.plans) == (NO_WAITS, (), {})
        read.append((run.workflow_type, run.domain))
    named = ("deploy", "docs")
    assert read == [(UNNAMED, UNNAMED), ("deploy", UNNAMED), named, named, named]


def test_what_few_sessions_have_may_be_absent() -> None:
    world = SessionWorld()
    world.start(wide(2))
    stored = record(world)
    for name in ("obeyed", "internals", "influences", "verifications", "scores"):
        assert name not in stored, "it takes no room where there is nothing"
    found = decode_session(orjson.dumps(stored), world.definitions.get)
    assert not isinstance(found, MissingDefinition)
    assert (found.obeyed, found.internals, found.influences, found.verifications) == ({}, {}, {}, {})


def test_a_record_of_a_newer_release_stops_the_role() -> None:
    world = SessionWorld()
    world.start(wide(1))
    with pytest.raises(LogCorrupted, match="version 2; this release reads version 1"):
        decode_session(orjson.dumps({**record(world), "v": 2}), world.definitions.get)
