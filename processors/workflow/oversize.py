"""The answer to an input whose events do not fit one batch of the log (DESIGN §2, rule 3).

Its run fails, instead of blocking its partition. What must be known stands: a write that was answered
ends as it did, one that still runs is unknown, and the accounts of speculation add up. Nothing is read,
so that no event carries arguments, and the answer is small whatever the input was.
"""

from __future__ import annotations

from pml.processors.workflow.advance import as_error, summary
from pml.processors.workflow.catalog import Catalog
from pml.processors.workflow.consent import withdraw
from pml.processors.workflow.decide import living
from pml.processors.workflow.draft import Draft
from pml.processors.workflow.inputs import Input, Step, Unreadable
from pml.processors.workflow.outcomes import end_task
from pml.processors.workflow.settling import (
    abandon_call,
    discard_all,
    fail_task,
    joined_tasks,
    unknown_task,
)
from pml.processors.workflow.shown import withdraw_all
from pml.processors.workflow.starting import reject
from pml.processors.workflow.state import Session
from pml.schemas.calls import CallEnded, CallError
from pml.schemas.commands import DeadlineReach
from pml.schemas.errors import Refused
from pml.schemas.events import RunFailed

_CODE = "EVENTS_TOO_LARGE"
_MESSAGE = (
    "what follows from one input does not fit the log; split the workflow, "
    "or pass smaller arguments and results"
)
_GIVEN_UP = CallError(code=_CODE, type="VALIDATION", message=_MESSAGE)


class _TooLarge(Refused):
    code = _CODE


def fail_too_large(session: Session | None, source: Input, catalog: Catalog, next_offset: int) -> Step:
    """What follows instead: a command is rejected; the run of an answer or a deadline fails.

    Args:
        session: its state as it was given to `decide`.
        source: the input whose answer is too large.
        catalog: the same snapshot.
        next_offset: the log offset that the first event will have.
    """
    known = living(session, source, catalog)
    draft = Draft(known, source, {}, catalog, next_offset)
    for run_id in _runs(draft, source):
        _fail_run(draft, run_id)
    step = draft.step()
    return step if step.events else Step((), session, (), ())


def _runs(draft: Draft, source: Input) -> list[str]:
    """The runs that cannot go on, after what the input itself says has been written down."""
    message = source.message
    if isinstance(message, CallEnded):
        return _settled(draft, message) if draft.runs else []
    if isinstance(message, Unreadable):
        reject(draft, message.command_type, _TooLarge(_MESSAGE), None)
        return []
    if isinstance(message.data, DeadlineReach):
        return [run.run_id for run in draft.runs if run.run_id == message.run_id and run.live]
    reject(draft, message.type, _TooLarge(_MESSAGE), message.run_id)
    return []


def _settled(draft: Draft, outcome: CallEnded) -> list[str]:
    waiting = joined_tasks(draft, outcome.call_id)
    for run_id, task_id, task in waiting:
        if task.call is not None and task.call.effect == "write":
            end_task(draft, run_id, task_id, task, outcome)
    return list(dict.fromkeys(run_id for run_id, _, _ in waiting))


def _fail_run(draft: Draft, run_id: str) -> None:
    withdraw_all(draft, run_id, "run_ended")
    for task_id, task in draft.run(run_id).tasks.items():
        run = draft.run(run_id)
        if task.awaits_approval:
            withdraw(draft, run_id, task_id, "run_ended")
        if task.status != "running" or task.call is None:
            continue
        if task.call.effect == "write":
            unknown_task(draft, run, task_id, _GIVEN_UP)
        else:
            fail_task(draft, run, task_id, _GIVEN_UP)
            abandon_call(draft, draft.run(run_id), task.call, "too_large")
    discard_all(draft, run_id, "aborted")
    run = draft.run(run_id)
    unknown = [task_id for task_id, task in run.tasks.items() if task.status == "unknown"]
    draft.emit(RunFailed(**summary(draft, run), error=as_error(_CODE, _MESSAGE, unknown)), run)
