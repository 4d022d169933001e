"""`needs`: the full values that deciding an input may read. Too many is fine, too few is a bug."""

from __future__ import annotations

from pml.processors.workflow.inputs import Address, Input, Unreadable
from pml.processors.workflow.state import Run, Session
from pml.schemas.commands import Command, RunStart


def needs(session: Session | None, source: Input) -> set[Address]:
    """Addresses in the input topics.

    A new run needs nothing but its own command, unless an older result of the session serves it.
    """
    if session is None or isinstance(source.message, Unreadable):
        return set()
    found = _cached(session)
    if isinstance(source.message, Command) and isinstance(source.message.data, RunStart):
        return found
    for run in session.runs.values():
        if run.live:
            found |= _of_run(run)
    return found


def _cached(session: Session) -> set[Address]:
    return {entry.result for entry in session.speculations.values() if entry.result}


def _of_run(run: Run) -> set[Address]:
    """The command, and every result that a task or decision which is still open may read."""
    assert run.graph is not None
    open_ids = [name for name in run.graph.nodes if not run.task(name).ended]
    read = run.graph.readers(open_ids).union(
        *(item.references for item in run.graph.decisions.values() if item.id not in run.decisions)
    )
    results = (run.task(name).result for name in read)
    return {run.payload, *(address for address in results if address)}
