"""`pml_get_task_result`: the whole result of a task, page by page."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field

from pml.schemas.calls import ToolResult
from pml.schemas.workflow import NodeId
from pml.streams.gateway.runs import NoSuchTask
from pml.streams.mcp_server.bounds import STRUCTURED_BYTES_MAX, TEXT_BYTES_MAX, cut_bytes, fitting, wire_bytes
from pml.streams.mcp_server.door import Call
from pml.streams.mcp_server.failures import InvalidArguments, NoResult
from pml.streams.mcp_server.lookups import events_of
from pml.streams.mcp_server.shapes import Answer, Asked, RunId, Session
from pml.streams.results import ResultReader
from pml.streams.run_history import summarised
from pml.streams.run_summary import RunSummary, TaskSummary

PAGE_CHARACTERS = 20_000
ENVELOPE_BYTES = 1_500

Format = Literal["raw", "pretty"]


class TaskResultAsked(Asked):
    """Which result, in which form, from where."""

    run_id: RunId
    task_id: NodeId
    session: Session = None
    format: Annotated[
        Format,
        Field(description="raw: the result as JSON. pretty: texts as they are, the rest as indented JSON."),
    ] = "pretty"
    offset: Annotated[
        int, Field(ge=0, description="The first character: next_offset of the page before.")
    ] = 0
    limit: Annotated[int, Field(ge=1, le=PAGE_CHARACTERS, description="Characters at most.")] = (
        PAGE_CHARACTERS
    )


class PageAnswer(Answer):
    """A part of a result; `next_offset` is absent on the last page."""

    run_id: str
    task_id: str
    format: Format
    text: str
    offset: int
    total: int
    next_offset: int | None = None


async def get_task_result(call: Call, asked: TaskResultAsked) -> PageAnswer:
    """A page of a full result, while it is kept.

    Raises:
        NoSuchRun: this tenant has none of that id.
        NoSuchTask: the run has no such task.
        NoResult: the task has none.
        PayloadGone: it has expired.
        StoreUnavailable, BrokerUnavailable: where it is looked up does not answer.
    """
    events = await events_of(call, asked.run_id, asked.session)
    task = task_of(summarised(events), asked.task_id)
    assert task.result_ref is not None
    async with ResultReader(call.door.settings) as reader:
        result = await reader.read(task.result_ref)
    return page(asked, written(result, asked.format))


def task_of(summary: RunSummary, task_id: str) -> TaskSummary:
    """A task that has a result.

    Raises:
        NoSuchTask: the run has no such task, or has not come to it.
        NoResult: it has none.
    """
    task = summary.results.get(task_id)
    if task is None:
        raise NoSuchTask(f"run {summary.run_id} has no task {task_id}, or has not come to it")
    if task.result_ref is None:
        raise NoResult(
            f"task {task_id} is {task.status} and has no result", status=task.status, error=task.error
        )
    return task


def page(asked: TaskResultAsked, text: str) -> PageAnswer:
    """A part of a text, as long as was asked for and as an answer holds.

    Raises:
        InvalidArguments: the text ends before the offset.
    """
    total = len(text)
    if asked.offset > total:
        raise InvalidArguments(
            f"offset {asked.offset} is behind the end: there are {total} characters", total=total
        )
    end = fitting(text, STRUCTURED_BYTES_MAX - ENVELOPE_BYTES, asked.offset, asked.limit)
    return PageAnswer(
        run_id=asked.run_id,
        task_id=asked.task_id,
        format=asked.format,
        text=text[asked.offset : end],
        offset=asked.offset,
        total=total,
        next_offset=end if end < total else None,
    )


def written(result: ToolResult, form: Format) -> str:
    """A result as text."""
    if form == "raw":
        return result.model_dump_json()
    parts = [_pretty(block) for block in result.content]
    if result.structured is not None:
        parts.append(_indented(result.structured))
    return "\n\n".join(parts)


def _pretty(block: dict[str, Any]) -> str:
    text = block.get("text")
    return text if block.get("type") == "text" and isinstance(text, str) else _indented(block)


def _indented(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def render(answer: PageAnswer) -> str:
    """The page itself where it has room twice, else its beginning and where the rest is."""
    more = "" if answer.next_offset is None else f"; the next page has offset {answer.next_offset}"
    end = answer.offset + len(answer.text)
    told = f"characters {answer.offset} to {end} of {answer.total}{more}\n"
    return told + cut_bytes(answer.text, TEXT_BYTES_MAX - wire_bytes(told))
