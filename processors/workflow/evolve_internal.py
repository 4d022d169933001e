"""What calls of the built-in server `pml` mean for the state; `evolve` folds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pml.processors.workflow.copying import replace
from pml.processors.workflow.folding import without
from pml.processors.workflow.state import Internal, Run, Session
from pml.schemas import events as e
from pml.schemas.memory import RECALL_TOOL
from pml.schemas.times import from_rfc3339


def forgotten(session: Session, run: Run) -> Session:
    """The session without what a run that ended asked of the server `pml`."""
    if not (session.internals or session.influences):
        return session
    internals = {name: item for name, item in session.internals.items() if item.run_id != run.run_id}
    return replace(session, internals=internals, influences=without(session.influences, run.run_id))


def _internal_started(session: Session, event: e.Event, data: e.InternalStarted) -> Session:
    item = Internal(
        call_id=data.call_id,
        run_id=event.run_id or "",
        tool=data.tool,
        arguments=data.arguments,
        timeout_ms=data.timeout_ms,
        deadline_ms=from_rfc3339(data.deadline_at),
    )
    return replace(session, internals={**session.internals, data.call_id: item})


def _internal_ended(session: Session, event: e.Event, data: e.InternalEnded) -> Session:
    ended = replace(session, internals=without(session.internals, data.call_id))
    if data.tool != RECALL_TOOL or not data.answer:
        return ended
    moved = {tool: past["influence"] for tool, past in data.answer["tools"].items()}
    return replace(ended, influences={**session.influences, event.run_id or "": moved})


INTERNALS: dict[str, Callable[[Session, e.Event, Any], Session]] = {
    e.InternalStarted.TYPE: _internal_started,
    e.InternalEnded.TYPE: _internal_ended,
}
