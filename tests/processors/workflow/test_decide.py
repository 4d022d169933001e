"""Decisions that no scenario file shows: crossings of runs, of time, and of what has been lost."""

from __future__ import annotations

from typing import Any

import pytest

from pml.processors.speculation.candidates import pending_touches
from pml.processors.workflow import Input, Unreadable, deadline, deadline_command, decide
from pml.processors.workflow.draft import Draft
from pml.schemas.calls import CallEnded
from pml.schemas.catalog import CatalogRecord, ServerTools
from pml.schemas.commands import Command, DeadlineReach
from pml.schemas.events import TaskFailed
from tests.processors.session_world import COMMANDS, OUTCOMES, SessionWorld, catalog, data_of

READ = "files:read_file"


def task(task_id: str, path: Any, *depends_on: str, tool: str = READ, **fields: Any) -> dict[str, Any]:
    return {
        "id": task_id,
        "tool": tool,
        "arguments": {"path": path},
        "depends_on": list(depends_on),
        **fields,
    }


def reference(expression: str) -> dict[str, str]:
    return {"type": "reference", "expression": expression}


def parameter(name: str) -> dict[str, str]:
    return {"type": "parameter", "parameter_name": name}


FORK = {"tasks": [task("a", "1"), task("b", "2"), task("c", reference("a.next"), "b")]}


def speculating(world: SessionWorld | None = None) -> SessionWorld:
    """A run whose third task runs early."""
    world = world or SessionWorld()
    world.start(FORK)
    world.answer(world.call_of("a"), {"next": "3"})
    assert world.call_of("c")
    return world


def test_a_new_run_reads_what_the_speculations_it_ends_need() -> None:
    world = speculating(
        SessionWorld(catalog=catalog({READ: {"scope": "readonly", "approval": "auto", "ttl_s": 1}}))
    )
    world.answer(world.call_of("c"))
    world.time_ms += 2_000
    step = world.start({"tasks": [task("x", "9")]}, run_id="run_2")
    ended = data_of(step, "speculation.ended")
    assert (ended.reason, ended.arguments) == ("expired", {"path": "3"})


def test_a_new_run_that_writes_ends_speculations_of_another() -> None:
    world = speculating()
    step = world.start({"tasks": [task("w", "3", tool="files:write_file")]}, run_id="run_2")
    ended = data_of(step, "speculation.ended")
    assert (ended.task_id, ended.reason, ended.arguments) == ("c", "invalidated", {"path": "3"})
    assert [cancel.call_id for cancel in step.cancels] == [ended.call_id]


def test_a_speculation_of_a_task_that_ended_otherwise_still_knows_its_arguments() -> None:
    world = speculating()
    world.catalog = catalog(speculation_mode="off")
    world.answer(world.call_of("b"))
    real = next(call.call_id for call in world.open_calls.values() if not call.speculative)
    step = world.answer(real, code="NOT_FOUND")
    ended = data_of(step, "speculation.ended")
    assert (ended.reason, ended.arguments) == ("unused", {"path": "3"})


def test_a_retry_that_cannot_be_prepared_is_an_attempt_of_its_own() -> None:
    retried = {"scope": "readonly", "approval": "auto", "retryable": True}
    world = SessionWorld(catalog=catalog({READ: retried}))
    world.start({"tasks": [task("a", "1")]})
    world.answer(world.call_of("a"), code="NETWORK", retryable=True)
    assert world.session is not None
    world.lose(world.session.runs["run_1"].payload)
    world.due()
    failed = [event.data for event in world.events if isinstance(event.data, TaskFailed)]
    assert [(item.attempt, item.final, bool(item.call_id)) for item in failed] == [
        (1, False, True),
        (2, True, False),
    ]


def test_a_joined_call_whose_task_is_given_up_goes_on_for_the_other_one() -> None:
    world = speculating()
    world.start({"tasks": [task("x", "3")], "options": {"timeout_s": 1}}, run_id="run_2")
    world.start({"tasks": [task("y", "3")]}, run_id="run_3")
    step = world.due()
    assert [event.type for event in step.events if event.run_id == "run_2"] == ["task.failed", "run.failed"]
    assert not step.cancels
    step = world.answer(world.call_of("y"), {"text": "three"})
    hit = data_of(step, "task.completed")
    assert (hit.task_id, hit.served_by) == ("y", "joined")


def test_the_last_task_that_gives_a_joined_call_up_ends_it() -> None:
    world = speculating()
    world.start({"tasks": [task("x", "3")], "options": {"timeout_s": 1}}, run_id="run_2")
    world.answer(world.call_of("b"), code="NETWORK")
    assert world.session is not None
    assert not world.session.runs["run_1"].live
    step = world.due()
    ended = data_of(step, "speculation.ended")
    assert (ended.fate, ended.reason, ended.cancelled) == ("discarded", "aborted", True)
    assert [cancel.call_id for cancel in step.cancels] == [ended.call_id]
    assert not world.session.live
    assert world.derived(world.session) == set()


def test_a_joined_call_that_fails_after_its_own_run_changes_nothing_of_that_run() -> None:
    world = speculating()
    world.start({"tasks": [task("x", "3")]}, run_id="run_2")
    world.answer(world.call_of("b"), code="NETWORK")
    assert world.session is not None
    ended = world.session.runs["run_1"]
    assert ended.status == "failed"
    assert data_of(world.answer(world.call_of("x"), code="NETWORK"), "speculation.ended").fate == "failed"
    assert world.session.runs["run_1"].tasks == ended.tasks


@pytest.mark.parametrize("code", ["TIMEOUT", "CONNECTION_LOST", "CANCELLED"])
@pytest.mark.parametrize("started", [True, False])
def test_a_write_is_unknown_only_where_it_had_started(code: str, started: bool) -> None:
    world = SessionWorld()
    world.start({"tasks": [task("w", "1", tool="files:write_file")]})
    step = world.answer(world.call_of("w"), code=code, started=started, duration_ms=12.5)
    assert step.events[0].type == ("task.unknown" if started else "task.failed")
    assert step.events[0].data.duration_ms == 12.5


def test_an_error_of_a_write_that_answered_is_a_failure() -> None:
    world = SessionWorld()
    world.start({"tasks": [task("w", "1", tool="files:write_file")]})
    assert world.answer(world.call_of("w"), code="PERMISSION").events[0].type == "task.failed"


def test_a_run_that_is_served_at_once_runs_its_next_layer_early() -> None:
    world = speculating()
    world.answer(world.call_of("c"), {"text": "three"})
    world.answer(world.call_of("b"))
    later = {"tasks": [task("x", "3"), task("y", "8"), task("z", "9", "x")]}
    step = world.start(later, run_id="run_2")
    assert data_of(step, "task.started").served_by == "repeat"
    early = [call for call in step.calls if call.speculative]
    assert [call.task_id for call in early] == ["z"]


@pytest.mark.parametrize("entry", [{"cacheable": False}, {"scope": "filesystem", "effect": "write"}])
def test_what_the_operator_takes_back_is_not_served(entry: dict[str, Any]) -> None:
    world = speculating()
    world.answer(world.call_of("c"), {"text": "three"})
    world.catalog = catalog({READ: {"scope": "readonly", "approval": "auto", **entry}})
    step = world.answer(world.call_of("b"))
    started = data_of(step, "task.started")
    assert started.served_by == "call"


@pytest.mark.parametrize("due", [0, 1])
def test_a_deadline_of_another_life_or_attempt_changes_nothing(due: int) -> None:
    world = speculating()
    world.time_ms += due
    for kind in ("task", "retry", "run", "speculation"):
        step = world.reach(kind, "a", world.time_ms, attempt=7)
        assert step.events == ()
    assert world.reach("task", "a", world.time_ms, run_id="run_9").events == ()


def test_a_deadline_for_a_session_that_is_not_known_changes_nothing() -> None:
    data = DeadlineReach(kind="run", due_at_ms=0)
    command = Command(type="deadline.reach", command_id="due", session_id="s1", run_id="run_1", data=data)
    step = decide(None, Input(COMMANDS, 0, 0, 1, "local", "s1", command), {}, catalog(), 0)
    assert (step.events, step.session, step.calls) == ((), None, ())


def test_a_speculation_without_an_answer_is_given_up_at_its_deadline() -> None:
    world = SessionWorld()
    world.start({"tasks": [task("a", "1"), task("b", "2", timeout_s=200), task("c", "3", "a", "b")]})
    world.answer(world.call_of("a"))
    step = world.due()
    ended = data_of(step, "speculation.ended")
    assert (ended.task_id, ended.fate, ended.reason, ended.cancelled) == ("c", "failed", "timeout", True)
    assert [cancel.call_id for cancel in step.cancels] == [ended.call_id]
    assert [event.type for event in step.events] == ["speculation.ended"]


def test_what_the_tool_requires_and_nobody_wrote_is_not_run_early() -> None:
    world = SessionWorld()
    server = world.catalog.servers["files"]
    schema = {"input_schema": {"required": ["path", "lines"]}}
    tools = tuple(item.model_copy(update=schema) for item in server.tools)
    wanting = CatalogRecord(kind="tool", id="files", data=server.model_copy(update={"tools": tools}))
    world.start(FORK)
    world.catalog = world.catalog.with_record(wanting)
    step = world.answer(world.call_of("a"), {"next": "3"})
    assert [event.type for event in step.events] == ["task.completed", "speculation.unresolvable"]
    assert data_of(step, "speculation.unresolvable").reason.endswith("lines: is required and not given")


def test_what_a_server_no_longer_lists_is_not_run_early() -> None:
    world = SessionWorld()
    world.start(FORK)
    gone = ServerTools(server="files", status="unavailable", error="it died")
    world.catalog = world.catalog.with_record(CatalogRecord(kind="tool", id="files", data=gone))
    step = world.answer(world.call_of("a"), {"next": "3"})
    assert [event.type for event in step.events] == ["task.completed"]


def test_a_read_is_not_run_early_behind_a_write_that_has_not_started() -> None:
    world = SessionWorld()
    tasks = [task("a", "1"), task("w", "2", "a", tool="files:write_file"), task("c", "3", "w")]
    world.start({"tasks": tasks})
    assert world.session is not None
    command = Command(type="x", command_id="c", session_id="s1", data=DeadlineReach(kind="run", due_at_ms=0))
    draft = Draft(world.session, Input(COMMANDS, 0, 9, 0, "local", "s1", command), {}, world.catalog, 0)
    run = world.session.runs["run_1"]
    assert pending_touches(draft, run, layer=1) == []
    # Its arguments are not known yet, so it may touch anything its server has.
    assert pending_touches(draft, run, layer=2) == ["files:"]


@pytest.mark.parametrize("status", ["error", "refused", "cancelled", "not_started"])
def test_an_answer_without_a_reason_is_a_failure_all_the_same(status: Any) -> None:
    world = SessionWorld()
    world.start({"tasks": [task("a", "1")]})
    outcome = CallEnded(call_id=world.call_of("a"), tenant="local", session_id="s1", status=status)
    error = data_of(world.outcome(outcome), "task.failed").error
    assert (error.code, error.message) == (status.upper(), f"the call ended as {status}")


def test_a_full_session_says_so() -> None:
    world = SessionWorld(catalog=catalog(runs_live_max=1))
    world.start(FORK)
    step = world.start(FORK, run_id="run_2")
    assert data_of(step, "command.rejected").error["code"] == "SESSION_FULL"
    assert data_of(step, "command.rejected").error["retryable"] is True


def test_a_definition_too_large_says_so() -> None:
    world = SessionWorld()
    tasks = [task(f"n{i}", "x" * 9_000) for i in range(40)]
    error = data_of(world.start({"tasks": tasks}), "command.rejected").error
    assert error["code"] == "DEFINITION_TOO_LARGE"


def test_a_literal_too_large_for_the_log_is_marked_there_and_whole_in_the_call() -> None:
    world = SessionWorld()
    step = world.start({"tasks": [task("a", "x" * 20_000)]})
    kept = data_of(step, "run.started").definition["tasks"][0]["arguments"]["path"]["value"]
    assert kept["_truncated"] is True
    assert step.calls[0].arguments == {"path": "x" * 20_000}


@pytest.mark.parametrize(("more", "event"), [("", "task.started"), ("x", "task.failed")])
def test_arguments_too_large_for_a_call_fail_their_task(more: str, event: str) -> None:
    """At most 1 MiB, as they go into the call."""
    path = "x" * (2**20 - len('{"path":""}'))
    step = SessionWorld().start({"tasks": [task("a", parameter("p"))]}, context={"p": path + more})
    assert event in [event.type for event in step.events]
    if more:
        error = data_of(step, "task.failed").error
        assert (error.code, error.type) == ("ARGUMENTS_TOO_LARGE", "VALIDATION")


def test_time_never_goes_back() -> None:
    world = SessionWorld()
    world.start(FORK)
    world.time_ms -= 5_000
    step = world.answer(world.call_of("a"), {"next": "3"})
    assert step.events[0].occurred_at == world.events[0].occurred_at


def test_commands_that_name_no_run_start_one_each_and_a_repeated_one_attaches() -> None:
    world = SessionWorld()
    workflow = {"tasks": [{"id": "n1", "tool": "files:list_dir", "arguments": {"path": "."}}]}
    for command_id in ("cmd_1", "cmd_2", "cmd_1"):
        world.start(workflow, run_id=None, command_id=command_id)
    started = [event.run_id for event in world.of_type("run.started")]
    assert len(set(started)) == 2
    assert [event.run_id for event in world.of_type("command.attached")] == started[:1]


def test_a_command_id_of_any_run_of_the_session_is_taken() -> None:
    world = SessionWorld()
    for number in (1, 2):
        world.start(
            {"tasks": [{"id": "a", "tool": "files:write_file", "arguments": {"path": "x"}}]}, f"run_{number}"
        )
    for number in (1, 2):
        step = world.send("run.abort", "run_1", command_id=f"cmd_run_{number}")
        assert data_of(step, "command.rejected").error["code"] == "CONFLICT"


def test_a_call_that_two_tasks_joined_serves_the_second_as_a_repeat() -> None:
    """Each run waits for its own slow task; both find the same early call running."""
    world = SessionWorld()
    for number in (1, 2):
        slow = {"id": "slow", "tool": "files:search", "arguments": {"text": str(number)}}
        quick = {"id": "quick", "tool": "files:list_dir", "arguments": {"path": str(number)}}
        late = {"id": "late", "tool": "files:read_file", "arguments": {"path": "a.md"}}
        world.start({"tasks": [quick, slow, {**late, "depends_on": ["quick", "slow"]}]}, f"run_{number}")
    for number in (1, 2):
        world.answer(world.call_of("quick", f"run_{number}"), {"first": "x"})
    early = world.of_type("speculation.started")
    assert len(early) == 1
    for number in (1, 2):
        world.answer(world.call_of("slow", f"run_{number}"), {"matches": []})
    started = [
        event.data.served_by for event in world.of_type("task.started") if event.data.task_id == "late"
    ]
    assert started == ["joined", "repeat"]
    world.answer(early[0].data.call_id, {"text": "hello"})
    assert [event.type for event in world.events][-2:].count("run.completed") >= 1


SIMPLE = {"tasks": [{"id": "a", "tool": "files:list_dir", "arguments": {"path": "docs"}}]}
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_an_event_says_who_and_what_it_follows_from() -> None:
    """Its cause is its input; principal and trace are its run's, or the command's where there is no run."""
    world = SessionWorld()
    begun = world.start(SIMPLE, principal="person:ada", traceparent=TRACE).events[0]
    assert (begun.tenant, begun.session_id, begun.epoch, begun.run_id) == ("local", "s1", 100, "run_1")
    assert (begun.command_id, begun.principal, begun.traceparent) == ("cmd_run_1", "person:ada", TRACE)
    assert begun.cause.model_dump() == {"topic": "pml.commands", "partition": 3, "offset": 1}
    answered = world.answer(world.call_of("a"), {"first": "x"}).events[0]
    assert (answered.command_id, answered.principal, answered.traceparent) == (None, "person:ada", TRACE)
    assert answered.cause.model_dump() == {"topic": "pml.tool-outcomes", "partition": 3, "offset": 1}
    refused = world.send("run.abort", "run_9", principal="person:bob", command_id="stop").events[0]
    assert (refused.run_id, refused.principal, refused.traceparent) == ("run_9", "person:bob", None)
    unread = world.unreadable(Unreadable("UNKNOWN_MESSAGE", "no such type", "cmd_9", "run.dance")).events[0]
    assert (unread.command_id, unread.principal, unread.traceparent) == ("cmd_9", "", None)
    assert [event.seq for event in world.events] == list(range(len(world.events)))
    assert len({event.id for event in world.events}) == len(world.events)


def test_a_cancelled_call_is_named_with_its_trace() -> None:
    world = SessionWorld()
    world.start(SIMPLE, traceparent=TRACE)
    call_id = world.call_of("a")
    (cancel,) = world.send("run.abort", "run_1").cancels
    assert (cancel.call_id, cancel.tenant, cancel.session_id) == (call_id, "local", "s1")
    assert (cancel.traceparent, bool(cancel.reason)) == (TRACE, True)


def test_a_command_without_a_run_is_refused_not_obeyed() -> None:
    for kind in ("run.retry", "run.continue", "run.abort"):
        world = SessionWorld()
        world.start(SIMPLE)
        (event,) = world.send(kind, None).events
        assert (event.type, event.data.error["code"]) == ("command.rejected", "NO_SUCH_RUN")


def test_an_expired_result_is_not_served_in_that_moment_but_just_before() -> None:
    for wait_ms, served_by in ((299_999, "speculation"), (300_000, "call")):
        world = SessionWorld(catalog=catalog(run_timeout_ms=10_000_000, task_timeout_ms=1_000_000))
        tasks = [
            {"id": "quick", "tool": "files:list_dir", "arguments": {"path": "x"}},
            {"id": "slow", "tool": "files:search", "arguments": {"text": "x"}},
            {
                "id": "late",
                "tool": "files:read_file",
                "arguments": {"path": "a.md"},
                "depends_on": ["quick", "slow"],
            },
        ]
        world.start({"tasks": tasks})
        world.answer(world.call_of("quick"), {"first": "x"})
        world.answer(world.call_of("late"), {"text": "early"})
        world.time_ms += wait_ms
        step = world.answer(world.call_of("slow"), {"matches": []})
        assert data_of(step, "task.started").served_by == served_by


def test_a_session_has_so_many_live_runs_and_so_many_in_all() -> None:
    writes = {"tasks": [{"id": "a", "tool": "files:write_file", "arguments": {"path": "x"}}]}
    for policy in ({"runs_live_max": 2}, {"runs_remembered_max": 2}):
        world = SessionWorld(catalog=catalog(**policy))
        assert [world.start(writes, f"run_{number}").events[0].type for number in (1, 2, 3)] == [
            "run.started",
            "run.started",
            "command.rejected",
        ]
        world.answer(world.call_of("a", "run_1"), {"ok": True})
        again = "run.started" if "runs_live_max" in policy else "command.rejected"
        assert world.start(writes, "run_4").events[0].type == again


def test_the_id_of_a_deadlines_command_is_no_longer_than_an_id_may_be() -> None:
    world = SessionWorld()
    world.start(SIMPLE, "r" * 128, command_id="c")
    assert world.session is not None
    found = deadline(world.session)
    assert found is not None
    assert len(deadline_command(world.session, found).command_id) == 128


def test_a_session_remembers_so_many_commands() -> None:
    world = SessionWorld(catalog=catalog(commands_remembered_max=2))
    for number in (1, 2, 3):
        world.start(SIMPLE, f"run_{number}")
    said = [world.send("run.abort", f"run_{number}", command_id=f"stop_{number}") for number in (1, 2, 3)]
    assert [step.events[0].type for step in said] == ["decision.made", "decision.made", "command.rejected"]
    assert said[2].events[0].data.error["code"] == "SESSION_FULL"
    again = world.send("run.abort", "run_1", command_id="stop_1").events[0]
    assert again.type == "command.attached", "what is remembered is still answered"


def test_an_answer_for_a_session_that_is_not_known_changes_nothing() -> None:
    outcome = CallEnded(call_id="c", tenant="local", session_id="s1", status="error")
    step = decide(None, Input(OUTCOMES, 0, 0, 1, "local", "s1", outcome), {}, catalog(), 0)
    assert (step.events, step.session, step.calls) == ((), None, ())


@pytest.mark.parametrize("kind", ["run.abort", "deadline.reach"])
def test_whatever_comes_ends_what_has_waited_too_long(kind: str) -> None:
    world = speculating(
        SessionWorld(catalog=catalog({READ: {"scope": "readonly", "approval": "auto", "ttl_s": 1}}))
    )
    world.answer(world.call_of("c"), {"text": "three"})
    world.time_ms += 1_000
    step = world.send(kind, "run_9") if kind == "run.abort" else world.reach("task", "zz", world.time_ms)
    assert data_of(step, "speculation.ended").reason == "expired"


@pytest.mark.parametrize(("after_ms", "told"), [(0, "command.attached"), (1, "run.started")])
def test_a_session_whose_runs_have_ended_is_remembered_for_its_time(after_ms: int, told: str) -> None:
    world = SessionWorld(catalog=catalog(session_ttl_ms=60_000))
    world.start(SIMPLE)
    world.answer(world.call_of("a"))
    world.time_ms += 60_000 + after_ms
    assert world.start(SIMPLE).events[0].type == told


def test_a_session_lives_for_as_long_as_one_of_its_runs() -> None:
    world = SessionWorld(catalog=catalog(session_ttl_ms=1_000))
    world.start(SIMPLE)
    world.time_ms += 5_000
    step = world.answer(world.call_of("a"))
    assert [event.type for event in step.events] == ["task.completed", "run.completed"]


def test_in_a_session_that_is_full_nothing_is_early_and_nothing_that_waits_is_served() -> None:
    for most, served_by, begun in ((3, "speculation", True), (2, "call", False)):
        world = SessionWorld(catalog=catalog(runs_remembered_max=most))
        quick, slow = task("quick", "x"), task("slow", "y")
        world.start({"tasks": [quick, slow, task("late", "a.md", "quick", "slow")]}, "run_1")
        world.answer(world.call_of("quick", "run_1"), {"text": "x"})
        world.answer(world.call_of("late", "run_1"), {"text": "before a write elsewhere"})
        world.start({"tasks": [quick, slow, task("later", "b.md", "quick", "slow")]}, "run_2")
        step = world.answer(world.call_of("slow", "run_1"), {"text": "y"})
        assert data_of(step, "task.started").served_by == served_by
        world.answer(world.call_of("quick", "run_2"), {"text": "x"})
        early = [event.run_id for event in world.events if event.type == "speculation.started"]
        assert ("run_2" in early) == begun


def test_a_session_says_whether_it_has_room_again() -> None:
    for policy, reason in (
        ({"runs_live_max": 1}, "runs_live"),
        ({"runs_remembered_max": 1}, "runs_remembered"),
    ):
        world = SessionWorld(catalog=catalog(**policy))
        world.start(SIMPLE, "run_1")
        error = data_of(world.start(SIMPLE, "run_2"), "command.rejected").error
        assert (error["code"], error["details"]["reason"]) == ("SESSION_FULL", reason)
