"""`pml_get_run` and `pml_list_runs`, and how a run is found."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from pml.schemas.base import Name
from pml.schemas.errors import PMLError, StoreUnavailable
from pml.schemas.events import Event
from pml.streams.mcp_server.bounds import STRUCTURED_BYTES_MAX, TEXT_BYTES_MAX, cut, cut_bytes, wire_bytes
from pml.streams.mcp_server.door import Call
from pml.streams.mcp_server.following import NOBODY_YET, dag_after
from pml.streams.mcp_server.run_answer import DagAnswer, RunAnswer, run_answer
from pml.streams.mcp_server.shapes import Answer, Asked, RunId, Session
from pml.streams.run_history import NoSuchRun, run_events, session_of, summarised
from pml.streams.run_listing import RunPage, list_runs
from pml.streams.run_summary import RunSummary

LIST = 20
LIST_MAX = 100
TEXT_MAX = 300


class GetRunAsked(Asked):
    """Which run."""

    run_id: RunId
    session: Session = None


class ListRunsAsked(Asked):
    """Which runs."""

    session: Annotated[Name | None, Field(description="Only those of this session.")] = None
    status: Literal["running", "waiting", "completed", "failed", "aborted"] | None = None
    limit: Annotated[int, Field(ge=1, le=LIST_MAX)] = LIST
    cursor: Annotated[str | None, Field(max_length=1_000, description="next_cursor of the page before.")] = (
        None
    )


class RunRow(Answer):
    """A run in a list."""

    run_id: str
    session_id: str
    status: str
    name: str | None = None
    workflow_type: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    duration_ms: float | None = None
    tasks: int = 0
    completed: int = 0
    failed: int = 0
    skipped: int = 0
    unknown: int = 0
    hits: int = 0
    saved_ms: float = 0.0
    error_code: str | None = None

    @field_validator("started_at", "ended_at", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        return value.isoformat() if isinstance(value, datetime) else value

    @field_validator("name", "workflow_type", mode="after")
    @classmethod
    def _not_too_long(cls, value: str | None) -> str | None:
        return None if value is None else cut(value, TEXT_MAX)


class RunsAnswer(Answer):
    """The newest runs first; `notice` where not all that were asked for have room."""

    items: list[RunRow]
    next_cursor: str | None = None
    notice: str | None = None


async def get_run(call: Call, asked: GetRunAsked) -> RunAnswer:
    """A run with its tasks; one that was sent and of which nothing is known yet is queued.

    Raises:
        NoSuchRun: this tenant has none of that id.
        Refused: what asked for it was refused.
        StoreUnavailable, BrokerUnavailable: where it is looked up does not answer.
    """
    try:
        events = await events_of(call, asked.run_id, asked.session)
    except NoSuchRun:
        sent = call.door.remembered.find(call.caller.tenant, asked.run_id)
        if sent is None:
            raise
        return run_answer(RunSummary(asked.run_id, sent, call.caller.tenant), notice=NOBODY_YET)
    dag: DagAnswer | None = None
    for event in events:
        dag = dag_after(dag, event)
    return run_answer(summarised(events), dag)


async def get_runs(call: Call, asked: ListRunsAsked) -> RunsAnswer:
    """The newest runs of the tenant.

    Raises:
        UndecodableRecord: the cursor is none.
        StoreUnavailable, BrokerUnavailable: where they are looked up does not answer.
    """
    settings, tenant = call.door.settings, call.caller.tenant
    found = await list_runs(settings, tenant, asked.session, asked.status, asked.limit, cursor=asked.cursor)
    return as_many_as_fit(found)


def as_many_as_fit(page: RunPage) -> RunsAnswer:
    """The first rows, as many as an answer holds; the rest is on the next page."""
    rows = [RunRow.model_validate(row) for row in page.rows]
    answer = RunsAnswer(items=rows, next_cursor=page.next_cursor)
    kept = len(rows)
    while wire_bytes(answer.model_dump(mode="json")) > STRUCTURED_BYTES_MAX:
        kept = kept * 3 // 4
        notice = f"{len(rows) - kept} more have no room here: ask with next_cursor, or for fewer"
        answer = RunsAnswer(items=rows[:kept], notice=notice, next_cursor=page.cursor_after(kept))
    return answer


async def events_of(call: Call, run_id: str, session: str | None) -> list[Event]:
    """The events of a run of the caller's tenant: from the store, which is a moment behind, or from the log.

    Raises:
        NoSuchRun: there are none.
        Refused: what asked for the run was refused.
        StoreUnavailable, BrokerUnavailable: where they are asked does not answer.
    """
    settings, tenant = call.door.settings, call.caller.tenant
    named = call.session_named(session)
    try:
        return await run_events(settings, tenant, run_id, named)
    except (NoSuchRun, StoreUnavailable) as error:
        known = call.door.remembered.find(tenant, run_id)
        if known is None or known == named:
            raise _told(error) from None
    return await run_events(settings, tenant, run_id, known)


async def session_for(call: Call, run_id: str, session: str | None) -> str:
    """The session of a run that somebody decides about.

    Raises:
        StoreUnavailable: it is not known here, and the store does not answer.
    """
    began_here = call.door.remembered.find(call.caller.tenant, run_id)
    # A conversation that the host names may have gone on in another part: where a run began is known better.
    known = session or began_here or call.session_named(None)
    if known is not None:
        return known
    try:
        return await session_of(call.door.settings, call.caller.tenant, run_id)
    except StoreUnavailable as error:
        raise _told(error) from None


def _told(error: PMLError) -> PMLError:
    """The error in words of this door."""
    if isinstance(error, NoSuchRun):
        return NoSuchRun(
            "no such run; where it is seconds old, give its `session` (the session_id that came with it)"
        )
    if isinstance(error, StoreUnavailable):
        return StoreUnavailable("the store of runs does not answer; with `session` the log is read instead")
    return error


def render(answer: RunsAnswer) -> str:
    """The runs in a line each, for a model that reads text alone."""
    lines = [
        f"{row.run_id} (session {row.session_id}) {row.status} {row.name or row.workflow_type or ''}"
        for row in answer.items
    ]
    told = [*([answer.notice] if answer.notice else []), *(lines or ["there are none"])]
    return cut_bytes("\n".join(told), TEXT_BYTES_MAX)
