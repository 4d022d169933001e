"""What a declared tool says of unknown writes is so, and settles them, whatever else the session does."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from pml.processors.workflow import deadline
from pml.processors.workflow.evolve_decisions import KEPT_RUNS_MAX
from pml.schemas.canonical import canonical_json
from pml.schemas.catalog import CatalogRecord, ToolHints
from pml.schemas.commands import RunStart
from pml.schemas.workflow import Workflow
from tests.processors.file_tools import ToolFailed, random_workflow
from tests.processors.session_world import SessionWorld, catalog, data_of
from tests.processors.workflow.test_decide import READ, parameter
from tests.processors.workflow.test_internal import broken
from tests.processors.workflow.test_random_sessions import SEEDS, Play

VERIFY = {"tool": "files:read_file", "arguments": {"path": "{path}"}, "done": "result.text == arguments.text"}
WRITE = {"scope": "filesystem", "approval": "auto", "touches": ["files:{path}"]}
ONE_WRITE: dict[str, Any] = {
    "tasks": [{"id": "n1", "tool": "files:write_file", "arguments": {"path": "a.md", "text": "x"}}]
}


def world(**verify: Any) -> SessionWorld:
    return SessionWorld(catalog=catalog({"files:write_file": {**WRITE, "verify": VERIFY | verify}}))


def doubt(play: Play) -> None:
    """An open write is lost sight of: it ran, or never will."""
    writes = [call for call in play.world.open_calls.values() if call.effect == "write"]
    if writes:
        call = play.random.choice(writes)
        code = play.random.choice(["TIMEOUT", "CONNECTION_LOST"])
        play.take(play.world.answer(call.call_id, code=code))


def answer_after_all(play: Play) -> None:
    """The own answer of a write that ran comes late."""
    assert play.world.session is not None
    for call_id in play.world.session.doubtful:
        result = play.ran.get(call_id, ToolFailed())
        if not isinstance(result, ToolFailed):
            play.take(play.world.answer(call_id, result))
            return


@given(seed=SEEDS)
@settings(max_examples=150, deadline=None)
def test_an_answer_is_the_truth_and_settles_what_is_unknown(seed: int) -> None:
    random = Random(seed)
    found = Play(random, world(after_s=random.choice([0, 2])))
    found.world.checked_every = 2
    for number in range(1, 3):
        found.start(random_workflow(random, conflicts=random.random() < 0.5), f"run_{number}")
    for _ in range(60):
        if found.world.open_calls:
            random.choices([doubt, Play.answer_one, answer_after_all], [3, 3, 1])[0](found)
        elif random.random() < 0.2:
            found.decide("run.retry")
        elif found.world.session is not None and deadline(found.world.session) is not None:
            found.take(found.world.due())
    found.drain()
    found.check_log()
    session = found.world.session
    assert session is not None
    assert not session.inquiries
    unverified = {event.data.unknown_call_id for event in found.world.of_type("task.unverified")}
    assert set(session.doubtful) <= unverified, "what is still unknown was not asked about in vain"


def test_a_session_lives_while_a_question_is_open() -> None:
    play = world()
    play.start(ONE_WRITE)
    play.answer(play.call_of("n1"), code="TIMEOUT")
    assert play.session is not None
    assert play.session.runs["run_1"].status == "failed"
    assert play.session.live
    play.due()
    play.answer(play.call_of("files:read_file"), code="NOT_FOUND")
    assert not play.session.live


def test_a_run_that_is_given_up_is_not_asked_about() -> None:
    play = world()
    for number in range(KEPT_RUNS_MAX + 1):
        path = {"path": f"{number}.md", "text": "x"}
        tasks = [{"id": "n1", "tool": "files:write_file", "arguments": path}]
        play.start({"tasks": tasks}, f"run_{number}")
        play.answer(play.call_of("n1"), code="TIMEOUT")
    assert play.session is not None
    assert {item.run_id for item in play.session.inquiries.values()} == {
        f"run_{number}" for number in range(1, KEPT_RUNS_MAX + 1)
    }


def test_a_run_goes_on_only_where_the_session_has_room() -> None:
    play = SessionWorld(catalog=catalog({"files:write_file": {**WRITE, "verify": VERIFY}}, runs_live_max=1))
    play.start(ONE_WRITE)
    play.answer(play.call_of("n1"), code="TIMEOUT")
    play.start({"tasks": [{"id": "n2", "tool": "files:parse"}], "options": {"timeout_s": 3_600}}, "run_2")
    play.answer(play.call_of("n2"), code="NETWORK", retryable=True)
    play.start(
        {
            "tasks": [
                {"id": "n3", "tool": "files:write_file", "arguments": {"path": "c.md"}, "timeout_s": 3_600}
            ]
        },
        "run_3",
    )
    play.due()
    step = play.answer(play.call_of("files:read_file"), {"text": "x"})
    assert [event.type for event in step.events] == ["task.resolved"]
    assert play.session is not None
    assert play.session.runs["run_1"].status == "failed"
    assert play.session.runs["run_1"].task("n1").status == "completed"


def describe(play: SessionWorld, tool: str, **fields: Any) -> None:
    """The server lists a tool with these fields."""
    server = play.catalog.servers["files"]
    tools = tuple(item.model_copy(update=fields if item.name == tool else {}) for item in server.tools)
    data = server.model_copy(update={"tools": tools})
    play.catalog = play.catalog.with_record(CatalogRecord(kind="tool", id="files", data=data))


def in_doubt(play: SessionWorld, write: dict[str, Any] = ONE_WRITE) -> SessionWorld:
    """Nobody knows what became of the write `n1`."""
    play.start(write)
    play.answer(play.call_of("n1"), code="TIMEOUT")
    return play


def test_a_question_that_is_not_open_any_more_is_not_asked() -> None:
    play = in_doubt(world())
    call_id = next(iter(play.session.inquiries)) if play.session else ""
    due_ms = play.time_ms
    play.send("task.resolve", data={"task_id": "n1", "resolution": "not_done"})
    assert not play.reach("verify", call_id, due_ms).events


def test_an_answer_settles_the_write_that_it_was_asked_about() -> None:
    play = world()
    writes = [
        {"id": name, "tool": "files:write_file", "arguments": {"path": f"{name}.md", "text": "x"}}
        for name in ("n1", "n2")
    ]
    play.start({"tasks": writes})
    for name in ("n1", "n2"):
        play.answer(play.call_of(name), code="TIMEOUT")
    play.due()
    play.due()
    step = play.answer(play.call_of("n2"), {"text": "x"})
    assert data_of(step, "task.resolved").task_id == "n2"


def test_a_tool_that_changed_since_it_was_approved_is_not_asked() -> None:
    play = in_doubt(world())
    describe(play, "read_file", definition="read_file-2")
    entry = {"scope": "readonly", "approval": "auto", "definition": "read_file-1"}
    found = catalog({"files:write_file": {**WRITE, "verify": VERIFY}, READ: entry})
    play.catalog = replace(play.catalog, permissions=found.permissions)
    step = play.due()
    assert ([event.type for event in step.events], step.calls) == (["task.unverified"], ())
    assert data_of(step, "task.unverified").error.code == "VERIFY_FAILED"


@pytest.mark.parametrize(("path", "asked"), [("ab.md", "task.verifying"), ("abc.md", "task.unverified")])
def test_a_question_is_as_large_as_a_call_may_be_at_most(path: str, asked: str) -> None:
    twice = {"path": "{path}", "one": "{text}", "two": "{text}"}
    around = len(canonical_json(twice | {"path": "ab.md", "one": "", "two": ""}))
    text = "x" * ((2**20 - around) // 2)
    assert around + 2 * len(text) == 2**20
    write = {"id": "n1", "tool": "files:write_file", "arguments": {"path": path, "text": parameter("text")}}
    play = world(arguments=twice)
    play.start({"tasks": [write]}, context={"text": text})
    play.answer(play.call_of("n1"), code="TIMEOUT")
    assert [event.type for event in play.due().events] == [asked]


def test_a_question_has_the_time_of_its_own_tool_not_of_the_write() -> None:
    play = in_doubt(world(), {"tasks": [{**ONE_WRITE["tasks"][0], "timeout_s": 5}]})
    assert data_of(play.due(), "task.verifying").timeout_ms == 30_000


def test_a_question_about_a_write_that_was_given_another_field_says_which() -> None:
    play = world()
    describe(play, "list_dir", output_schema={"properties": {"location": {"type": "string"}}})
    describe(play, "write_file", input_schema={"properties": {"path": {"type": "string"}}})
    place = {"type": "reference", "expression": "n0.path"}
    write = {"id": "n1", "tool": "files:write_file", "arguments": {"path": place, "text": "x"}}
    play.start({"tasks": [{"id": "n0", "tool": "files:list_dir"}, write]})
    play.answer(play.call_of("n0"), {"location": "a.md"})
    play.answer(play.call_of("n1"), code="TIMEOUT")
    step = play.due()
    assert data_of(step, "task.verifying").mapped == {"path": "location"}
    assert [call.arguments for call in step.calls] == [{"path": "a.md"}]


def test_nothing_is_asked_about_other_arguments_than_the_write_had() -> None:
    """A topic that was made anew gives its offsets a second time."""
    play = in_doubt(world())
    assert play.session is not None
    other = {"id": "n1", "tool": "files:write_file", "arguments": {"path": "b.md", "text": "x"}}
    start = RunStart(workflow=Workflow.model_validate({"tasks": [other]}))
    play.payloads[play.session.runs["run_1"].payload] = start
    assert data_of(play.due(), "task.unverified").error.code == "PAYLOAD_GONE"


def test_a_tool_that_turns_out_to_write_is_not_asked() -> None:
    play = world()
    play.start(ONE_WRITE)
    play.answer(play.call_of("n1"), code="TIMEOUT")
    describe(play, "read_file", hints=ToolHints(read_only=False))
    step = play.due()
    assert ([event.type for event in step.events], step.calls) == (["task.unverified"], ())
    assert data_of(step, "task.unverified").error.code == "VERIFY_FAILED"


def test_a_write_that_left_an_argument_out_is_asked_about_with_those_that_it_had() -> None:
    play = world()
    describe(play, "write_file", input_schema={"required": ["path"]})
    note = {"type": "reference", "expression": "n0.note"}
    write = {"id": "n1", "tool": "files:write_file", "arguments": {"path": "a.md", "text": "x", "note": note}}
    play.start({"tasks": [{"id": "n0", "tool": "files:parse"}, write]})
    assert data_of(play.answer(play.call_of("n0")), "task.started").omitted == ("note",)
    play.answer(play.call_of("n1"), code="TIMEOUT")
    describe(play, "write_file", input_schema={"required": ["path", "note"]})
    assert [call.arguments for call in play.due().calls] == [{"path": "a.md"}]


def test_a_tool_that_fails_says_nothing_of_the_write_whatever_came_with_it() -> None:
    play = world()
    play.start(ONE_WRITE)
    play.answer(play.call_of("n1"), code="TIMEOUT")
    play.due()
    step = play.outcome(broken(play.call_of("files:read_file"), {"text": "x"}))
    assert [event.type for event in step.events] == ["task.unverified"]
