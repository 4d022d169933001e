"""A run as an agent is told of it: always small enough, and the worst first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pml.schemas.base import Coordinate
from pml.schemas.events import RunCounts
from pml.streams.mcp_server.bounds import ANSWER_BYTES_MAX, wire_bytes
from pml.streams.mcp_server.run_answer import (
    DagAnswer,
    RunAnswer,
    ended_and_early,
    render,
    run_answer,
    speedup,
)
from pml.streams.mcp_server.server import told
from pml.streams.mcp_server.tools import TOOLS
from pml.streams.run_summary import RunSummary, TaskSummary

PLACE = Coordinate(topic="pml.tool-outcomes", partition=3, offset=1)
WIDE = st.text(alphabet=st.sampled_from('a"\\\né😀\x01'), max_size=8)


def size(answer: RunAnswer) -> int:
    """The bytes of the whole answer on the wire, where it is told as a success and where as an error."""
    both = [told(TOOLS[name], answer) for name in ("pml_get_run", "pml_execute")]
    assert [answered.is_error for answered in both] == [False, True]
    assert both[1].structured_content["details"] == {"run": both[0].structured_content}
    return max(wire_bytes(answered.model_dump(mode="json", by_alias=True)) for answered in both)


def asked_of_a_person(text: str) -> dict[str, Any]:
    return {
        "approval_id": "apr_1",
        "task_id": "n1",
        "tool": f"files:{text}",
        "arguments": {"path": text},
        "effect": "write",
        "expires_at": "2026-01-01T00:00:00.000000Z",
    }


@example("😀", 1_300, 500, 200, 500)
@example("😀", 139, 15, 3, 0)
@settings(max_examples=30, deadline=None)
@given(
    text=WIDE,
    repeat=st.integers(1, 1_300),
    tasks=st.integers(0, 500),
    waits=st.integers(0, 200),
    tools=st.integers(0, 500),
)
def test_whatever_a_run_holds_its_answer_has_room(
    text: str, repeat: int, tasks: int, waits: int, tools: int
) -> None:
    long = text * repeat
    near = {"type": "tool", "id": long[:300], "name": long[:100], "score": 0.5}
    error = {"code": "TASK_FAILED", "message": long[:2_048], "details": {"suggestions": [near] * 5}}
    task = TaskSummary("failed", "call", preview=long[:240], error=error, result_ref=PLACE, duration_ms=0.1)
    name = "n" * 58
    summary = RunSummary(
        "r" * 128,
        "s" * 128,
        "local",
        status="failed",
        name=long[:200],
        results={f"{name}{number:05d}": task for number in range(tasks)},
        counts=RunCounts(tasks=tasks),
        error=error,
        result={"all": long},
        result_error=long,
        waits_for={f"apr_{number:0124d}": asked_of_a_person(long[:200]) for number in range(waits)},
    )
    dag = DagAnswer(mode="dag", reason=long, tools_discovered=tuple(f"{long[:290]}{n}" for n in range(tools)))

    answer = run_answer(summary, dag, "a notice")

    assert size(answer) <= ANSWER_BYTES_MAX
    assert len(answer.tasks) + answer.tasks_omitted == tasks
    assert len(answer.waits_for) + answer.waits_omitted == waits


@pytest.mark.parametrize(
    ("status", "error", "code", "message"),
    [
        ("failed", {"code": "TASK_FAILED", "message": "n1"}, "TASK_FAILED", "the run failed: n1"),
        ("aborted", {"code": "ABORTED", "message": "enough"}, "ABORTED", "the run was aborted: enough"),
        ("aborted", None, "RUN_FAILED", "the run was aborted"),
    ],
)
def test_a_run_that_failed_is_no_success(
    status: str, error: dict[str, Any] | None, code: str, message: str
) -> None:
    answer = run_answer(RunSummary("run_1", "s1", "local", status, error=error))

    for name in ("pml_execute", "pml_continue", "pml_replan"):
        answered = told(TOOLS[name], answer)
        assert answered.is_error
        body = answered.structured_content
        assert (body["code"], body["message"], body["run_id"]) == (code, message, "run_1")
        assert answered.content[0].text.startswith(f"run_1 (session s1) {status}")
    for name in ("pml_get_run", "pml_abort"):
        assert not told(TOOLS[name], answer).is_error


def test_a_small_run_is_told_whole() -> None:
    done = TaskSummary("completed", "speculation", preview="x" * 240, duration_ms=3.0, saved_ms=9.0)
    summary = RunSummary("run_1", "s1", "local", "completed", results={"n1": done}, result=[1], duration_ms=7)

    answer = run_answer(summary)

    assert (answer.result, answer.notice, answer.poll_after_ms) == ([1], None, None)
    assert answer.tasks[0].preview == "x" * 240
    assert render(answer).splitlines() == [
        "run_1 (session s1) completed after 7 ms",
        "result: [1]",
        f"n1 completed (speculation): {'x' * 199}…",
    ]


def test_where_not_all_tasks_have_room_those_that_failed_have() -> None:
    done = TaskSummary("completed", "call", preview="é" * 240)
    failed = TaskSummary("failed", "call", error={"code": "TIMEOUT", "message": "too slow"})
    results = {**{f"n{number}": done for number in range(499)}, "last": failed}

    answer = run_answer(RunSummary("run_1", "s1", "local", "failed", results=results))

    assert answer.tasks_omitted
    assert "last" in [task.task_id for task in answer.tasks]
    assert answer.notice is not None
    assert "pml_get_task_result" in answer.notice


def test_a_result_that_is_too_large_is_told_by_its_beginning() -> None:
    answer = run_answer(RunSummary("run_1", "s1", "local", "completed", result="y" * 20_000))

    assert answer.result is None
    assert answer.result_preview is not None
    assert answer.result_preview.startswith('"yyy')


def test_an_approval_says_how_a_person_decides_and_names_no_tool() -> None:
    waits = {"apr_1": asked_of_a_person("a.txt")}
    answer = run_answer(RunSummary("run_1", "s1", "local", "waiting", waits_for=waits))

    wait = answer.waits_for[0]
    assert (wait.kind, wait.arguments) == ("approval", '{"path":"a.txt"}')
    assert "pml approvals approve apr_1 --session s1" in wait.how
    assert "pml_" not in wait.how
    assert wait.how in render(answer)


def test_a_checkpoint_names_the_tools() -> None:
    asked = {"checkpoint_id": "chk_1", "deadline_at": "2026-01-01T00:00:00Z", "on_timeout": "abort"}
    answer = run_answer(RunSummary("run_1", "s1", "local", "waiting", waits_for={"chk_1": asked}))

    assert answer.waits_for[0].kind == "checkpoint"
    assert "pml_continue" in answer.waits_for[0].how


def test_ended_tasks_and_those_that_were_served_early() -> None:
    results = [
        *(TaskSummary("completed", served) for served in ("call", "speculation", "joined", "repeat")),
        *(TaskSummary(status) for status in ("failed", "skipped", "running", "unknown", "pending")),
    ]
    assert ended_and_early(results) == (6, 3)


def test_a_speedup_is_of_the_calls_and_of_the_time_from_the_first_to_the_end() -> None:
    results = {name: TaskSummary("completed", duration_ms=30.0, saved_ms=20.0) for name in ("n1", "n2", "n3")}
    summary = RunSummary("run_1", "s1", "local", "completed", results=results, duration_ms=900, calling_ms=60)
    assert speedup(summary) == 2.5
    assert speedup(replace(summary, status="running")) is None
    assert speedup(replace(summary, calling_ms=0)) is None
