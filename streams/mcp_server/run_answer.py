"""A run as an agent is told of it: how it ended or how far it is, what it waits for, each task."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from pml.schemas.analysis import Mode
from pml.schemas.discovery import Discovered
from pml.schemas.errors import PMLError
from pml.schemas.events import RunCounts
from pml.streams.approval_text import call_lines, calls_of, shown_arguments
from pml.streams.mcp_server.bounds import RUN_BYTES_MAX, TEXT_BYTES_MAX, cut, cut_bytes, wire_bytes
from pml.streams.mcp_server.discover import line
from pml.streams.mcp_server.shapes import Answer
from pml.streams.run_summary import RunSummary, TaskSummary

POLL_AFTER_MS = 1_000
Status = Literal["queued", "running", "waiting", "completed", "failed", "aborted", "suggestions"]
_ENDED_TASKS = frozenset({"completed", "failed", "skipped"})
_EARLY = frozenset({"speculation", "joined", "repeat"})
_NOTEWORTHY = {"failed": 0, "unknown": 0, "running": 1, "pending": 2, "completed": 3, "skipped": 4}


class TaskAnswer(Answer):
    """One task; `preview` is the beginning of its result."""

    task_id: str
    status: str
    served_by: str | None = None
    duration_ms: float = 0.0
    saved_ms: float = 0.0
    preview: str | None = None
    error_code: str | None = None
    error_message: str | None = None


class WaitAnswer(Answer):
    """What a run waits for, until when, and who settles it how."""

    kind: Literal["checkpoint", "approval"]
    id: str
    until: str
    how: str
    task_id: str | None = None
    tool: str | None = None
    arguments: str | None = Field(
        default=None, description="As JSON, without secrets; of several calls a line each; long ones are cut."
    )


class DagAnswer(Answer):
    """What a program, or what an intent means, turned out to be.

    `speedup` of a run that has ended: what its calls took one after the other, by the time from the first
    of them to its end. Where tools take less than PML itself it is below 1.
    """

    mode: Mode | None = None
    reason: str | None = None
    tasks_count: int | None = None
    layers_count: int | None = None
    speedup: float | None = None
    tools_discovered: tuple[str, ...] = ()


class RunAnswer(Answer):
    """A run. While `status` is queued or running, look again after `poll_after_ms` with pml_get_run.

    With status suggestions there is no run: the intent is answered with what fits it.
    """

    run_id: str | None = None
    session_id: str | None = None
    status: Status
    poll_after_ms: int | None = None
    name: str | None = None
    duration_ms: int | None = None
    tasks: tuple[TaskAnswer, ...] = ()
    tasks_omitted: int = 0
    counts: RunCounts | None = None
    result: Any = None
    result_preview: str | None = Field(default=None, description="In place of a result that is too large.")
    result_error: str | None = None
    error_code: str | None = None
    error_message: str | None = None
    waits_for: tuple[WaitAnswer, ...] = ()
    waits_omitted: int = 0
    dag: DagAnswer | None = None
    suggestions: tuple[Discovered, ...] = ()
    notice: str | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """How much of a run is told: characters of each text, and how many tasks and questions."""

    preview: int
    message: int
    result: int
    tasks: int
    waits: int


# The first that fits is taken; the last fits whatever a run may hold (a property of the tests).
CUTS = (
    Cut(preview=240, message=2_000, result=10_240, tasks=500, waits=50),
    Cut(preview=120, message=500, result=4_000, tasks=200, waits=20),
    Cut(preview=60, message=200, result=1_000, tasks=60, waits=10),
    Cut(preview=0, message=40, result=0, tasks=8, waits=2),
)


def run_answer(summary: RunSummary, dag: DagAnswer | None = None, notice: str | None = None) -> RunAnswer:
    """What is told of a run, small enough to be read."""
    answers = (_told(summary, dag, notice, most) for most in CUTS)
    fits = (answer for answer in answers if wire_bytes(answer.model_dump(mode="json")) <= RUN_BYTES_MAX)
    return next(fits, None) or _told(summary, None, None, CUTS[-1])


def _told(summary: RunSummary, dag: DagAnswer | None, notice: str | None, most: Cut) -> RunAnswer:
    result, preview = _result(summary.result, most.result)
    error = summary.error or {}
    answer = RunAnswer(
        run_id=summary.run_id,
        session_id=summary.session_id,
        status=summary.status,
        poll_after_ms=POLL_AFTER_MS if summary.status in ("queued", "running") else None,
        name=summary.name,
        duration_ms=summary.duration_ms if summary.ended else None,
        tasks=_tasks(summary.results, most),
        tasks_omitted=max(0, len(summary.results) - most.tasks),
        counts=summary.counts if summary.ended else None,
        result=result,
        result_preview=preview,
        result_error=_text(summary.result_error, most.message),
        error_code=_text(error.get("code"), 64),
        error_message=_text(error.get("message"), most.message),
        waits_for=_waits(summary, most),
        waits_omitted=max(0, len(summary.waits_for) - most.waits),
        dag=_dag(dag, summary, most),
        suggestions=_suggestions(error) if most.result else (),
        notice=notice,
    )
    return answer if most is CUTS[0] else answer.model_copy(update={"notice": _cut_notice(notice)})


def _cut_notice(notice: str | None) -> str:
    told = "Parts of this answer are cut: pml_get_task_result gives the whole result of a task."
    return f"{notice} {told}" if notice else told


def _tasks(results: dict[str, TaskSummary], most: Cut) -> tuple[TaskAnswer, ...]:
    """The tasks in their order; where not all have room, those that failed come first."""
    shown = results
    if len(results) > most.tasks:
        by_note = sorted(results, key=lambda name: _NOTEWORTHY.get(results[name].status, 0))
        kept = set(by_note[: most.tasks])
        shown = {name: task for name, task in results.items() if name in kept}
    return tuple(_task(name, task, most) for name, task in shown.items())


def _task(name: str, task: TaskSummary, most: Cut) -> TaskAnswer:
    error = task.error or {}
    return TaskAnswer(
        task_id=name,
        status=task.status,
        served_by=task.served_by,
        duration_ms=task.duration_ms,
        saved_ms=task.saved_ms,
        preview=_text(task.preview, most.preview),
        error_code=_text(error.get("code"), 64),
        error_message=_text(error.get("message"), most.message),
    )


def _waits(summary: RunSummary, most: Cut) -> tuple[WaitAnswer, ...]:
    asked = list(summary.waits_for.items())[: most.waits]
    return tuple(_wait(summary, name, question, most) for name, question in asked)


def _wait(summary: RunSummary, name: str, asked: dict[str, Any], most: Cut) -> WaitAnswer:
    if "approval_id" not in asked:
        how = f"pml_continue, pml_replan or pml_abort; after that time: {asked['on_timeout']}"
        return WaitAnswer(kind="checkpoint", id=name, until=asked["deadline_at"], how=how)
    place = f"{name} --session {summary.session_id}"
    return WaitAnswer(
        kind="approval",
        id=name,
        until=asked["expires_at"],
        how=f"A person decides: `pml approvals approve {place}` or `pml approvals reject {place}`",
        task_id=asked["task_id"] or None,
        tool=cut(", ".join(dict.fromkeys(call["tool"] for call in calls_of(asked))), 100),
        arguments=_text(_arguments(asked), most.message),
    )


def _arguments(asked: dict[str, Any]) -> str:
    """Of one call its arguments; of several a line each."""
    lone = len(calls_of(asked)) == 1 and not asked.get("omitted")
    return shown_arguments(calls_of(asked)[0]) if lone else "\n".join(call_lines(asked))


def _dag(dag: DagAnswer | None, summary: RunSummary, most: Cut) -> DagAnswer | None:
    if dag is None:
        return None
    tools = tuple(cut(tool, 300) for tool in dag.tools_discovered[: most.tasks])
    told = {"reason": _text(dag.reason, most.message), "tools_discovered": tools, "speedup": speedup(summary)}
    return dag.model_copy(update=told)


def speedup(summary: RunSummary) -> float | None:
    """What its calls took, one after the other, by the time from the first to the end; None before that."""
    one_by_one_ms = sum(task.duration_ms + task.saved_ms for task in summary.results.values())
    if not summary.ended or not summary.calling_ms or not one_by_one_ms:
        return None
    return round(one_by_one_ms / summary.calling_ms, 2)


def _suggestions(error: dict[str, Any]) -> tuple[Discovered, ...]:
    """What an intent could mean, where no capability was meant for certain: names, which are short."""
    told = (error.get("details") or {}).get("suggestions") or ()
    return tuple(Discovered.model_validate(item) for item in told)


def _result(value: Any, most: int) -> tuple[Any, str | None]:
    """The result, or its beginning where it is too large."""
    text = "" if value is None else _json(value)
    return (value, None) if len(text) <= most else (None, cut(text, most) or None)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _text(text: str | None, most: int) -> str | None:
    return (cut(text, most) or None) if text else None


class RunEndedBadly(PMLError):
    """A run that was asked for failed, or was aborted; its code is that of the run."""

    code = "RUN_FAILED"


def failure_of(answer: RunAnswer) -> RunEndedBadly | None:
    """The error that a run ended with; its details have the run with what it did before."""
    if answer.status not in ("failed", "aborted"):
        return None
    told = f"the run was {answer.status}" if answer.status == "aborted" else "the run failed"
    message = f"{told}: {cut(answer.error_message, 500)}" if answer.error_message else told
    error = RunEndedBadly(message, run=answer.model_dump(mode="json"))
    error.code = answer.error_code or error.code
    return error


def ended_and_early(results: Iterable[TaskSummary]) -> tuple[int, int]:
    """How many tasks have ended, and how many of them were served by what ran early."""
    ended = [task for task in results if task.status in _ENDED_TASKS]
    return len(ended), sum(1 for task in ended if task.served_by in _EARLY)


def render(answer: RunAnswer) -> str:
    """The run in a few lines, for a model that reads text alone."""
    lines = [] if answer.run_id is None else [_headline(answer)]
    lines += [line(item) for item in answer.suggestions]
    lines += [f"waits for {wait.kind} {wait.id} until {wait.until}: {wait.how}" for wait in answer.waits_for]
    if answer.result is not None:
        lines.append(f"result: {cut(_json(answer.result), 1_000)}")
    lines += [text for text in (answer.notice,) if text]
    lines += [_task_line(task) for task in answer.tasks]
    return cut_bytes("\n".join(lines), TEXT_BYTES_MAX)


def _headline(answer: RunAnswer) -> str:
    took = "" if answer.duration_ms is None else f" after {answer.duration_ms} ms"
    why = f": {answer.error_code}: {answer.error_message}" if answer.error_code else ""
    later = f"; look again with pml_get_run in {answer.poll_after_ms} ms" if answer.poll_after_ms else ""
    return f"{answer.run_id} (session {answer.session_id}) {answer.status}{took}{why}{later}"


def _task_line(task: TaskAnswer) -> str:
    early = f" ({task.served_by})" if task.served_by in _EARLY else ""
    said = task.error_message or task.preview or ""
    return f"{task.task_id} {task.status}{early}: {cut(said, 200)}"
