"""The records of capabilities, from what the log really says of programs and workflows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.capabilities import records
from pml.processors.capabilities.records import (
    ANALYSED,
    KnownCapability,
    after_use,
    drafted,
    drafted_again,
    first_draft,
    told,
    used,
)
from pml.schemas.catalog import Capability
from pml.schemas.codec import encode
from pml.schemas.workflow import Workflow
from tests.processors.session_world import SessionWorld

AT = "2026-11-22T10:00:00.000000Z"
PROGRAM = """
page = await mcp.files.read_file(path="a.md")
if page.count > 2:
    await mcp.files.search(query="todo", path="a.md")
return page.title
"""
PATH = {"type": "parameter", "parameter_name": "path"}
DEPTH = {"type": "parameter", "parameter_name": "depth"}
DAG: dict[str, Any] = {
    "name": "notes",
    "context": {"path": "a.md", "depth": 2},
    "tasks": [
        {"id": "n1", "tool": "files:read_file", "arguments": {"path": PATH}},
        {
            "id": "n2",
            "tool": "files:search",
            "arguments": {
                "query": "todo",
                "depth": DEPTH,
                "in": {"type": "reference", "expression": "n1.folder"},
            },
        },
    ],
}
Calls = list[tuple[str, dict[str, Any]]]
TOKEN = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"


def drafts(world: SessionWorld) -> list[Capability]:
    """What the events of a world tell, read as they lie in the log."""
    found = []
    for event in world.events:
        if event.type in ANALYSED:
            record = drafted(event.type, event.tenant, json.loads(encode(event))["data"], AT)
            found += [record] if record else []
    return found


def draft_of_program(source: str = PROGRAM) -> Capability:
    world = SessionWorld()
    world.program(source, "python")
    world.analyse()
    (record,) = drafts(world)
    return record


def draft_of_workflow(workflow: dict[str, Any], context: dict[str, Any] | None = None) -> Capability:
    world = SessionWorld()
    world.start(workflow, context=context or {})
    (record,) = drafts(world)
    return record


def defaults(record: Capability) -> dict[str, Any]:
    return {item.name: item.default for item in record.parameters if not item.required}


def calls(world: SessionWorld) -> Calls:
    """Every call, each answered with the same, until nothing is open."""
    made = []
    while world.open_calls:
        call = next(iter(world.open_calls.values()))
        made.append((call.tool, call.arguments))
        world.answer(call.call_id, {"count": 3, "title": "Notes", "folder": "docs"})
    return made


def calls_again(
    record: Capability, context: dict[str, Any] | None = None
) -> list[tuple[str, dict[str, Any]]]:
    """What a record's tasks call when they run as a workflow."""
    world = SessionWorld()
    given = {**defaults(record), **(context or {})}
    workflow = Workflow(tasks=record.tasks, decisions=record.decisions, result=record.result, context=given)
    world.start(workflow.model_dump(mode="json"))
    return calls(world)


def test_a_program_is_drafted_with_its_literals_as_parameters() -> None:
    record = draft_of_program()
    assert (record.source, record.language, record.code) == ("code", "python", PROGRAM)
    assert (record.status, record.not_learned, record.created_at) == ("draft", None, AT)
    assert defaults(record) == {"path": "a.md", "query": "todo"}
    assert record.tools == ("files:read_file", "files:search")
    assert record.capability_id.startswith("cap_")


def test_what_was_drafted_makes_the_same_calls_again() -> None:
    world = SessionWorld()
    world.program(PROGRAM, "python")
    world.analyse()
    assert calls_again(draft_of_program()) == calls(world)


def test_what_was_drafted_runs_with_other_values() -> None:
    made = calls_again(draft_of_program(), {"path": "b.md"})
    assert made == [
        ("files:read_file", {"path": "b.md"}),
        ("files:search", {"query": "todo", "path": "b.md"}),
    ]


def test_a_workflow_keeps_its_own_defaults_and_requires_what_its_command_gave() -> None:
    record = draft_of_workflow(DAG, {"path": "b.md"})
    assert (record.source, record.name, record.workflow_type) == ("dag", "notes", "notes")
    assert {item.name: (item.required, item.default) for item in record.parameters} == {
        "path": (True, None),
        "depth": (False, 2),
        "query": (False, "todo"),
    }
    assert calls_again(record, {"path": "c.md"})[0] == ("files:read_file", {"path": "c.md"})


def test_the_same_structure_is_the_same_capability_whatever_its_values() -> None:
    first, second = DAG["tasks"]
    tasks = [first, {**second, "arguments": {**second["arguments"], "query": "x"}}]
    other = {**DAG, "name": "other", "context": {"path": "z", "depth": 9}, "tasks": tasks}
    assert draft_of_workflow(other).capability_id == draft_of_workflow(DAG).capability_id
    elsewhere = {**DAG, "tasks": [tasks[0], {**tasks[1], "depends_on": ["n1"], "tool": "files:list_dir"}]}
    assert draft_of_workflow(elsewhere).capability_id != draft_of_workflow(DAG).capability_id


def test_a_single_call_that_nobody_named_is_only_a_call() -> None:
    world = SessionWorld()
    world.start({"tasks": [{"id": "n1", "tool": "files:read_file", "arguments": {"path": "a.md"}}]})
    assert drafts(world) == []
    named = draft_of_workflow({"intent": "Read my notes", "tasks": [{"id": "n1", "tool": "files:list_dir"}]})
    assert (named.source, named.intent, named.name) == ("tool", "Read my notes", "Read my notes")
    assert (named.tool_id, named.default_args) == ("files:list_dir", {})


def test_a_call_with_a_name_is_its_tool_with_what_it_was_given() -> None:
    given = {"path": "a.md", "depth": {"type": "parameter", "parameter_name": "depth"}}
    task = {"id": "n1", "tool": "files:list_dir", "arguments": given}
    record = draft_of_workflow({"intent": "List", "tasks": [task]}, {"depth": 3})
    assert (record.tool_id, record.default_args) == ("files:list_dir", {"path": "a.md"})
    assert calls_again(record, {"depth": 1}) == [("files:list_dir", {"path": "a.md", "depth": 1})]
    assert calls_again(record, {"depth": 1, "path": "b"})[0][1]["path"] == "b"


LOOP = """\
count = 0
while count < args.most:
    await mcp.files.list_dir(path='.')
    await capabilities.peek()"""


def draft_of_loop(code: str = LOOP) -> Capability:
    world = SessionWorld()
    world.program(code, "python")
    world.analyse()
    return drafts(world)[0]


def test_a_program_that_does_not_run_as_a_dag_is_kept_as_it_is() -> None:
    record = draft_of_loop()
    assert (record.mode, record.language, record.code) == ("sandbox", "python", LOOP)
    assert (record.reasons[0], record.tasks, record.result) == ("line 2: `while`", (), None)
    assert (record.tools, record.capabilities) == (("files:list_dir",), ("peek",))
    assert [item.name for item in record.parameters] == ["most"]
    assert after_use(first_draft(record, ()), True, AT).record.status == "learned"


def test_the_same_program_with_other_comments_is_the_same_capability() -> None:
    same = draft_of_loop(LOOP + "  # and again\n\n")
    assert same.capability_id == draft_of_loop().capability_id
    other = draft_of_loop(LOOP.replace("'.'", "'docs'"))
    assert other.capability_id != same.capability_id


def test_a_program_with_a_secret_cannot_be_kept_as_it_is() -> None:
    record = draft_of_loop(LOOP.replace("'.'", f"'{TOKEN}'"))
    assert record.not_learned == records.SECRET
    assert TOKEN not in record.model_dump_json()


def test_a_secret_that_is_written_down_is_never_learned_and_says_so() -> None:
    known = first_draft(draft_of_program(PROGRAM.replace("todo", TOKEN)), ())
    assert known.record.not_learned == records.SECRET
    assert TOKEN not in known.record.model_dump_json()
    assert after_use(known, True, AT).record.status == "draft"


def test_a_clean_draft_takes_the_place_of_one_with_a_secret() -> None:
    first = first_draft(draft_of_program(PROGRAM.replace("todo", TOKEN)), ())
    again = drafted_again(after_use(first, True, AT), draft_of_program())
    assert (again.record.not_learned, defaults(again.record)["query"]) == (None, "todo")
    assert (again.record.name, again.record.runs) == (first.record.name, 1)
    assert after_use(again, True, AT).record.status == "learned"


@pytest.mark.parametrize(
    ("length", "reason"), [(20_000, records.CUT), (8_000, None)], ids=["more than the log keeps", "kept"]
)
def test_a_value_that_the_log_cuts_cannot_be_called_again(length: int, reason: str | None) -> None:
    assert draft_of_program(PROGRAM.replace("todo", "ab " * (length // 3))).not_learned == reason


def test_a_record_is_never_larger_than_the_catalog_holds() -> None:
    calls = "\n".join(f'await mcp.files.search(query="{"ab " * 2_000} {number}")' for number in range(20))
    record = draft_of_program(calls)
    assert (record.not_learned, record.tasks, record.code) == (records.TOO_LARGE, (), None)
    assert len(record.model_dump_json()) < records.RECORD_BYTES_MAX


def test_its_first_success_makes_it_learned_and_failures_are_counted() -> None:
    failed = after_use(first_draft(draft_of_program(), ()), False, AT)
    assert (failed.record.status, failed.record.runs, failed.record.successes) == ("draft", 1, 0)
    learned = after_use(after_use(failed, True, AT), False, AT)
    assert (learned.record.status, learned.record.runs, learned.record.successes) == ("learned", 3, 1)


def test_a_name_is_nobody_elses_and_stays() -> None:
    draft = draft_of_program().model_copy(update={"name": "Read my notes!", "intent": None})
    known = first_draft(draft, {"read-my-notes"})
    assert known.record.name == "read-my-notes-2"
    again = drafted_again(known, draft.model_copy(update={"name": "x", "intent": "What do they say?"}))
    assert (again.record.name, again.record.intent) == ("read-my-notes-2", "What do they say?")


def test_runs_that_end_by_themselves_count_for_their_capability() -> None:
    assert used("run.completed", {"capability_id": "cap_1"}) == ("cap_1", True)
    assert used("run.failed", {"capability_id": "cap_1"}) == ("cap_1", False)
    assert used("run.aborted", {"capability_id": "cap_1"}) is None
    assert used("run.completed", {}) is None


@given(st.integers(min_value=1, max_value=300))
def test_what_is_told_is_never_far_behind_and_seldom_told(runs: int) -> None:
    known, times = first_draft(Capability(tenant="local", name="x"), ()), 0
    for _ in range(runs):
        known = after_use(known, True, AT)
        if known.stale:
            known, times = told(known), times + 1
    assert known.record.runs - known.told_runs <= max(1, runs // records.TOLD_SHARE)
    assert times <= 20 + 12 * max(0, runs // 20).bit_length()


def test_what_is_known_is_only_stale_after_a_run() -> None:
    assert not KnownCapability(Capability(tenant="local", name="x")).stale


# What JSON in the log has; larger ones do not come out of a record.
INTEGERS = st.integers(-(2**63), 2**63 - 1)
ARGUMENTS = st.dictionaries(
    st.text(max_size=3) | st.just("x" * 300),
    INTEGERS
    | st.recursive(
        st.builds(lambda value: {"type": "literal", "value": value}, INTEGERS),
        lambda inner: (
            st.builds(
                lambda fields: {"type": "object_of", "fields": fields},
                st.dictionaries(st.text(max_size=3) | st.just("y" * 400), inner, max_size=3),
            )
            | st.builds(lambda items: {"type": "list_of", "items": items}, st.lists(inner, max_size=3))
        ),
        max_leaves=6,
    ),
    max_size=4,
)


@given(ARGUMENTS)
def test_whatever_arguments_are_called_a_workflow_begins_and_is_drafted(arguments: dict[str, Any]) -> None:
    """Names of arguments and fields are a server's or a user's: empty, long, anything."""
    tasks = [{"id": f"n{n}", "tool": "files:search", "arguments": arguments} for n in (1, 2)]
    world = SessionWorld()
    world.start({"tasks": tasks})
    assert world.of_type("run.started")
    (record,) = drafts(world)
    assert all(0 < len(item.name) <= 200 for item in record.parameters)
    assert record.not_learned or calls_again(record) == calls(world)
