"""Scores as the doors take them: for runs that there are, answered with what was written down."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from pml.schemas.commands import RunScore
from pml.schemas.errors import StoreUnavailable
from pml.schemas.events import CommandAttached, RunScored, RunStarted
from pml.streams.client import IntentProducer, Submission, wait_for_answer
from pml.streams.run_history import NoSuchRun, query_store, session_events
from pml.streams.settings import Settings


@dataclass(frozen=True, slots=True)
class Scored:
    """A score that is in the log; `again` where the same command had been obeyed before."""

    submission: Submission
    data: RunScore
    again: bool

    def as_dict(self) -> dict[str, Any]:
        """The score as JSON-serialisable values."""
        sent = self.submission
        ids = {"run_id": sent.run_id, "session_id": sent.session_id, "command_id": sent.command_id}
        value = self.data.model_dump(include={"name", "number", "category", "boolean"}, exclude_none=True)
        return {**ids, **value, "status": "attached" if self.again else "scored"}


async def score_run(
    producer: IntentProducer,
    run_id: str,
    data: RunScore,
    *,
    session_id: str | None,
    command_id: str | None = None,
    tenant: str,
    principal: str,
    timeout_s: float,
) -> Scored:
    """Score a run, also one that ended long ago, and wait until that is in the log.

    Raises:
        NoSuchRun: the tenant has no such run.
        Refused: the command was rejected.
        StoreUnavailable: no session was named, and the store that knows it does not answer.
        WaitedTooLong, BrokerUnavailable: as their names say.
    """
    found = await session_of_run(producer.settings, tenant, run_id, session_id)
    sent = await producer.decide(
        run_id, data, session_id=found, command_id=command_id, tenant=tenant, principal=principal
    )
    answer = await wait_for_answer(producer.settings, sent, timeout_s=timeout_s)
    assert isinstance(answer.data, (RunScored, CommandAttached))
    return Scored(sent, data, again=isinstance(answer.data, CommandAttached))


async def session_of_run(settings: Settings, tenant: str, run_id: str, session_id: str | None) -> str:
    """The session that had a run. The store is asked, and, where it is behind or away, the session's log.

    Raises:
        NoSuchRun: neither knows it.
        StoreUnavailable: the store does not answer, and no session is named.
    """
    where = "tenant = {tenant:String} AND run_id = {run_id:String}"
    given = {"tenant": tenant, "run_id": run_id}
    if session_id is not None:
        where, given = f"{where} AND session_id = {{session_id:String}}", {**given, "session_id": session_id}
    sql = f"SELECT session_id FROM runs WHERE {where} ORDER BY started_at DESC LIMIT 1"
    try:
        rows = (await asyncio.to_thread(query_store, settings, sql, given, 1)).rows
    except StoreUnavailable:
        if session_id is None:
            raise
        rows = []
    if rows:
        return str(rows[0][0])
    # A run without a session is its own session.
    session = session_id or run_id
    events = await session_events(settings, tenant, session)
    if not any(event.run_id == run_id and isinstance(event.data, RunStarted) for event in events):
        raise NoSuchRun(
            f"session {session} of tenant {tenant} never had a run {run_id}; name the session and the tenant "
            "that had it"
        )
    return session
