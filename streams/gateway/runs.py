"""`/v1/runs`: begin runs, look at them, decide about them, read their results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from pml.schemas.commands import (
    CommandData,
    RunAbort,
    RunContinue,
    RunReplan,
    RunRetry,
    RunScore,
    TaskResolve,
)
from pml.schemas.errors import BrokerUnavailable, PMLError, WaitedTooLong
from pml.streams.client import Submission, new_id, wait_for_answer, wait_for_run
from pml.streams.gateway import requests
from pml.streams.gateway.answers import json_response, page
from pml.streams.gateway.callers import Caller
from pml.streams.gateway.doors import Doors
from pml.streams.results import ResultReader
from pml.streams.run_history import run_events, session_of, summarised
from pml.streams.run_listing import list_runs
from pml.streams.scoring import score_run

# The orchestrator answers within milliseconds; one that is being started again needs some seconds.
ANSWER_S = 10.0
POLL_AFTER_MS = 1_000


class NoSuchTask(PMLError):
    """The run has no such task, or it has no result."""

    code = "NO_SUCH_TASK"


async def start(request: Request, caller: Caller, doors: Doors) -> Response:
    """Begin a run: 202, or with `wait_s` 200 where it ended or waits within that time."""
    caller.require("runs:write")
    asked, patience_s = await requests.run_request(request), requests.wait_s(request)
    with doors.waiting.one_more():
        submission = await _started(doors, caller, asked, asked.run_id or new_id("run"))
        return await _answered(doors, submission, patience_s)


async def _started(doors: Doors, caller: Caller, asked: requests.RunRequest, run_id: str) -> Submission:
    """The command as Kafka took it; the run has its id before, for a send that fails may have arrived."""
    with naming(run_id, BrokerUnavailable):
        return await doors.producer.start_run(
            asked.code or asked.workflow,
            intent=asked.intent,
            options=asked.options,
            context=asked.context,
            session_id=asked.session_id,
            run_id=run_id,
            tenant=caller.tenant,
            principal=caller.principal,
            request=asked.request,
        )


async def show_all(request: Request, caller: Caller, doors: Doors) -> Response:
    """The newest runs of the tenant; of one session from the log."""
    caller.require("runs:read")
    asked = request.query_params
    found = await list_runs(
        doors.settings,
        caller.tenant,
        asked.get("session"),
        asked.get("status"),
        requests.limit(request),
        cursor=asked.get("cursor"),
    )
    return page(found.rows, found.next_cursor)


async def show(request: Request, caller: Caller, doors: Doors) -> Response:
    """One run with its tasks."""
    caller.require("runs:read")
    summary = summarised(await _events(request, caller, doors))
    return json_response(summary.as_dict())


async def decide(request: Request, caller: Caller, doors: Doors, model: type[CommandData]) -> Response:
    """What somebody decided about a run."""
    caller.require("runs:write")
    run_id, patience_s = requests.name_of(request, "run_id"), requests.wait_s(request)
    fields = {"task_id": request.path_params["task"]} if model is TaskResolve else {}
    data, command_id = await requests.command_data(request, model, **fields), requests.command_id(request)
    session_id = request.query_params.get("session") or await session_of(
        doors.settings, caller.tenant, run_id
    )
    with doors.waiting.one_more():
        submission = await doors.producer.decide(
            run_id,
            data,
            session_id=session_id,
            command_id=command_id,
            tenant=caller.tenant,
            principal=caller.principal,
        )
        return await _answered(doors, submission, patience_s)


async def score(request: Request, caller: Caller, doors: Doors, model: type[RunScore]) -> Response:
    """How good a run was, also long after its end; a name that is scored again has the newer value."""
    caller.require("runs:write")
    run_id = requests.name_of(request, "run_id")
    data = await requests.command_data(request, model)
    with doors.waiting.one_more():
        scored = await score_run(
            doors.producer,
            run_id,
            data,
            session_id=request.query_params.get("session"),
            command_id=requests.command_id(request),
            tenant=caller.tenant,
            principal=caller.principal,
            timeout_s=ANSWER_S,
        )
    return json_response(scored.as_dict())


async def result(request: Request, caller: Caller, doors: Doors) -> Response:
    """The full result of a task, while it is kept."""
    caller.require("runs:read")
    task_id = str(request.path_params["task"])
    task = summarised(await _events(request, caller, doors)).results.get(task_id)
    if task is None or task.result_ref is None:
        raise NoSuchTask(f"task {task_id} has no result")
    async with ResultReader(doors.settings) as reader:
        found = await reader.read(task.result_ref)
    return json_response(found.model_dump(mode="json"))


DECISIONS: dict[str, type[CommandData]] = {
    "continue": RunContinue,
    "replan": RunReplan,
    "abort": RunAbort,
    "retry": RunRetry,
}


@contextmanager
def naming(run_id: str, kind: type[PMLError] = PMLError) -> Iterator[None]:
    """An error inside of the block says which run the command was for, for it may be obeyed all the same.

    Args:
        kind: the errors after which it may be; others have sent nothing and name no run.
    """
    try:
        yield
    except kind as error:
        error.details.setdefault("run_id", run_id)
        raise


async def _events(request: Request, caller: Caller, doors: Doors) -> Any:
    run_id = requests.name_of(request, "run_id")
    return await run_events(doors.settings, caller.tenant, run_id, request.query_params.get("session"))


async def _answered(doors: Doors, submission: Submission, patience_s: float) -> Response:
    """The end of a run, or what it waits for, or that it goes on; the caller counts among those who wait."""
    with naming(submission.run_id):
        await wait_for_answer(doors.settings, submission, timeout_s=ANSWER_S)
        if not patience_s:
            return _accepted(submission, "queued")
        try:
            summary = await wait_for_run(doors.settings, submission, timeout_s=patience_s, until_waiting=True)
        except WaitedTooLong:
            return _accepted(submission, "running")
        return json_response(summary.as_dict())


def _accepted(submission: Submission, status: str) -> Response:
    body = {
        "run_id": submission.run_id,
        "session_id": submission.session_id,
        "command_id": submission.command_id,
        "status": status,
        "poll_after_ms": POLL_AFTER_MS,
    }
    return json_response(body, 202, {"location": f"/v1/runs/{submission.run_id}"})
