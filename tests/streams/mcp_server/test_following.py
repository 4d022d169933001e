"""What is known of a run while it goes on, and what is told of one that nobody waits for any longer."""

from __future__ import annotations

from typing import Any

from pml.schemas.base import Coordinate
from pml.schemas.calls import CallError
from pml.schemas.errors import Refused
from pml.schemas.events import (
    Event,
    EventData,
    InternalEnded,
    RunCode,
    RunExpanded,
    RunStarted,
    TaskCompleted,
)
from pml.streams.mcp_server.door import Remembered, derived_session
from pml.streams.mcp_server.failures import failed
from pml.streams.mcp_server.following import NOBODY_YET, Watch, going_on
from pml.streams.mcp_server.lookups import RunRow, as_many_as_fit
from pml.streams.run_listing import Cursor, RunPage, cursor_of
from tests.streams.mcp_server.clients import SENT

PLACE = Coordinate(topic="pml.commands", partition=3, offset=1)
NOW = "2026-01-01T00:00:00.000000Z"


def event(seq: int, data: EventData) -> Event:
    return Event(
        id=f"local/run_1:0:{seq}",
        type=data.TYPE,
        version=data.VERSION,
        tenant="local",
        principal="agent:mcp",
        session_id="run_1",
        epoch=0,
        run_id="run_1",
        seq=seq,
        offset=seq,
        occurred_at=NOW,
        data=data,
    )


def started(code: RunCode | None = None, tasks: int = 0) -> RunStarted:
    return RunStarted(
        definition={},
        code=code,
        context={},
        payload_ref=PLACE,
        payload_hash="",
        deadline_at=NOW,
        layers=0,
        tasks=tasks,
    )


def analysed(answer: dict[str, Any] | None, error: CallError | None = None) -> InternalEnded:
    return InternalEnded(call_id="call_1", tool="pml:analyse", answer=answer, error=error)


def expanded(tasks: int) -> RunExpanded:
    return RunExpanded(
        number=1,
        workflow_type="cap_1",
        definition={},
        kept={},
        payload_ref=PLACE,
        layers=2,
        tasks=tasks,
    )


def watched(*datas: EventData) -> Watch:
    watch = Watch(SENT)
    for seq, data in enumerate(datas):
        watch.see(event(seq, data))
    return watch


NODES = [{"type": "task", "tool": tool} for tool in ("files:read", "git:log", "files:read")]
CODE = RunCode(source="…", language="python")


def test_a_program_that_is_a_dag() -> None:
    answer = {"mode": "dag", "structure": {"nodes": [*NODES, {"type": "decision"}]}}
    watch = watched(started(CODE), analysed(answer), expanded(3))

    assert watch.dag is not None
    assert watch.dag.model_dump() == {
        "mode": "dag",
        "reason": None,
        "tasks_count": 3,
        "layers_count": 2,
        "speedup": None,
        "tools_discovered": ("files:read", "git:log"),
    }
    assert watch.tasks == 3


def test_a_program_that_is_none_says_why() -> None:
    reasons = ("line 1: `while`", "line 4: `try`")
    sandbox = expanded(0).model_copy(update={"mode": "sandbox", "reasons": reasons, "layers": 0})
    structure = {"nodes": [{"type": "task", "tool": "files:read"}]}
    layer = {"definition": {"tasks": [{"id": "n1", "tool": "git:log"}]}, "mode": "sandbox", "layers": 1}
    step = expanded(1).model_copy(update=layer)
    watch = watched(started(CODE), analysed({"mode": "sandbox", "structure": structure}), sandbox, step)

    assert watch.dag is not None
    assert watch.dag.model_dump() == {
        "mode": "sandbox",
        "reason": "line 1: `while`; line 4: `try`",
        "tasks_count": 1,
        "layers_count": 1,
        "speedup": None,
        "tools_discovered": ("files:read", "git:log"),
    }


def test_a_program_that_nobody_understood_says_why() -> None:
    error = CallError(code="ANALYSIS_TIMEOUT", message="nobody analysed it")
    watch = watched(started(CODE), analysed(None, error))

    assert watch.dag is not None
    assert (watch.dag.mode, watch.dag.reason) == (None, "nobody analysed it")


def test_where_a_structure_was_cut_for_the_log_the_tasks_name_the_tools() -> None:
    plan = expanded(1).model_copy(update={"definition": {"tasks": [{"id": "n1", "tool": "git:log"}]}})
    watch = watched(started(CODE), analysed({"mode": "dag", "structure": '{"nodes": […'}), plan)

    assert watch.dag is not None
    assert watch.dag.tools_discovered == ("git:log",)


def test_a_workflow_is_no_program() -> None:
    assert watched(started(tasks=2), expanded(2)).dag is None


def test_a_run_that_goes_on_is_running_whatever_it_was_before() -> None:
    done = TaskCompleted(
        task_id="n1",
        attempt=1,
        layer=0,
        tool="files:read",
        call_id="call_1",
        arguments={},
        arguments_hash="",
        served_by="call",
        speculable=False,
        started_at=NOW,
        duration_ms=1.0,
        result={},
        preview="{}",
        result_ref=PLACE,
        result_hash="",
        result_bytes=2,
        as_of=NOW,
    )
    told = going_on(watched(started(tasks=2), done))

    assert (told.status, told.poll_after_ms, told.notice) == ("running", 1_000, None)
    assert [task.task_id for task in told.tasks] == ["n1"]


def test_a_run_of_which_nothing_was_seen_is_queued_and_says_what_that_may_mean() -> None:
    told = going_on(watched())

    assert (told.status, told.poll_after_ms, told.notice) == ("queued", 1_000, NOBODY_YET)


def test_sessions_are_remembered_by_tenant_as_long_as_there_is_room() -> None:
    remembered = Remembered(most=2)
    for number in range(3):
        remembered.keep("acme", f"run_{number}", "s1")

    assert [remembered.find("acme", f"run_{number}") for number in range(3)] == [None, "s1", "s1"]
    assert remembered.find("other", "run_2") is None


def test_a_session_of_the_transport_is_not_told_to_the_log() -> None:
    told = derived_session("0123456789abcdef")

    assert told is not None
    assert told.startswith("ses_")
    assert "0123456789abcdef" not in told
    assert told == derived_session("0123456789abcdef") != derived_session("other")
    assert derived_session(None) is None


def test_a_list_has_as_many_runs_as_there_is_room_for() -> None:
    row = RunRow(run_id="run_0", session_id="s1", status="completed", name="é" * 400).model_dump()
    rows = [{**row, "run_id": f"run_{n}"} for n in range(100)]
    cursors = tuple(Cursor("2026-11-22T10:00:00Z", f"run_{n}", "s1", 7) for n in range(100))

    answer = as_many_as_fit(RunPage(rows, cursors, more=False))

    assert 0 < len(answer.items) < 100
    assert answer.notice is not None
    assert answer.notice.startswith(f"{100 - len(answer.items)} more")
    assert cursor_of(answer.next_cursor or "") == cursors[len(answer.items) - 1]
    whole = as_many_as_fit(RunPage(rows[:3], cursors[:3], more=False))
    assert (whole.notice, whole.next_cursor, len(whole.items)) == (None, None, 3)


def test_an_error_with_details_that_are_too_large_is_told_without() -> None:
    told = failed(Refused("no " * 2_000, much="x" * 40_000, run_id="run_7"))

    assert told.is_error
    assert told.structured_content["details"] == {"omitted": "too large"}
    assert told.structured_content["run_id"] == "run_7"
    assert len(told.structured_content["message"]) == 2_000
