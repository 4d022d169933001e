"""`needs`: the full values that deciding an input may read. Too many is fine, too few is a bug."""

from __future__ import annotations

from pml.processors.workflow.elements import ending_addresses, past_addresses
from pml.processors.workflow.graph import read_by
from pml.processors.workflow.inputs import Address, Input, Unreadable
from pml.processors.workflow.state import Run, Session
from pml.schemas.calls import CallEnded
from pml.schemas.commands import Command, DeadlineReach, RunReplan, RunRetry, TaskResolve
from pml.schemas.stepping import STEP_TOOL

_OPENING = (RunReplan, RunRetry, TaskResolve)


def needs(session: Session | None, source: Input) -> set[Address]:
    """Addresses in the input topics.

    A command that begins a run may end speculations of other runs, so it reads what any input reads.
    """
    if session is None or isinstance(source.message, Unreadable):
        return set()
    entries = session.speculations.values()
    found = {entry.result for entry in entries if entry.result}
    found.update(source.result for entry in entries for source in entry.sources)
    found.update(entry.plan for entry in entries if entry.plan)
    if session.past:
        found |= past_addresses(session)
    for run in session.runs.values():
        if run.live:
            found |= _of_run(session, run)
        if run.live and run.predicts:
            found |= ending_addresses(run)
        if run.graph is not None and _opens(session, run, source):
            found |= _of_whole_run(run)
    return found


def _opens(session: Session, run: Run, source: Input) -> bool:
    """Whether an input may bring tasks of a run that are not open yet: a plan, a part, a retry, an answer."""
    message = source.message
    if isinstance(message, Command):
        asks = isinstance(message.data, DeadlineReach) and message.data.kind == "verify"
        return message.run_id == run.run_id and (asks or isinstance(message.data, _OPENING))
    if not isinstance(message, CallEnded):
        return False
    return _is_part(session, run, message) or (bool(run.unknown) and _settles(session, message.call_id))


def _is_part(session: Session, run: Run, outcome: CallEnded) -> bool:
    """Whether a program with loops goes on; its new tasks read the results of those before."""
    item = session.internals.get(outcome.call_id)
    asked = item is not None and item.tool == STEP_TOOL and item.run_id == run.run_id
    told = outcome.result.structured if outcome.result else None
    return asked and isinstance(told, dict) and bool(told.get("unfolded"))


def _settles(session: Session, call_id: str) -> bool:
    """Whether an answer may settle a task of unknown outcome."""
    asking = (item.call.call_id for item in session.inquiries.values() if item.call)
    return call_id in session.doubtful or call_id in asking


def _of_whole_run(run: Run) -> set[Address]:
    """Everything: what is opened may read any result."""
    results = {task.result for task in run.tasks.values() if task.result}
    return {run.payload, *run.replans, *results}


def _of_run(session: Session, run: Run) -> set[Address]:
    """The command, and every result that a task, decision or speculation which is still open may read."""
    assert run.graph is not None
    speculated = {
        entry.task_id
        for entry in session.speculations.values()
        if entry.began_for(run.run_id) and not entry.served
    }
    read = {
        name
        for node in run.graph.nodes.values()
        if node.references and (node.id in speculated or not run.task(node.id).ended)
        for name in node.references
    }.union(
        read_by(run.graph.result),
        *(item.references for item in run.graph.decisions.values() if item.id not in run.decisions),
    )
    results = (run.task(name).result for name in read)
    plans = run.replans if run.sandbox is None else run.replans[-1:]
    return {run.payload, *plans, *(address for address in results if address)}
