"""A task of unknown outcome is settled: by a person, by its call's late answer, or by the tool that its
entry declares (DESIGN §2, rule 6).
"""

from __future__ import annotations

from typing import Any, Literal

from pml.processors.workflow.advance import advance
from pml.processors.workflow.beforehand import begin
from pml.processors.workflow.consent import NOBODY
from pml.processors.workflow.draft import Draft
from pml.processors.workflow.folding import coordinate_of
from pml.processors.workflow.inputs import payload_value
from pml.processors.workflow.inquiries import as_failure, find_inquiry, give_up, verdict
from pml.processors.workflow.obedience import (
    Decision,
    NotWaiting,
    SessionFull,
    known_run,
    require_person,
)
from pml.processors.workflow.outcomes import failure_of, uncertain
from pml.processors.workflow.reopening import layer_before, with_dependents
from pml.processors.workflow.retrying import kept_graph, take_up
from pml.processors.workflow.settling import safe_error
from pml.processors.workflow.starting import check_room
from pml.processors.workflow.state import Inquiry, Run
from pml.schemas.calls import CallEnded, CallError
from pml.schemas.canonical import canonical_json, value_hash
from pml.schemas.commands import Command, TaskResolve
from pml.schemas.errors import PMLError
from pml.schemas.events import TaskResolved
from pml.schemas.sanitiser import preview, sanitise, sanitise_text

Resolution = Literal["done", "not_done", "retry"]


def resolve_task(draft: Draft, command: Command, data: TaskResolve, decision: Decision) -> None:
    """Settle a task as a person says. A run that ended for it goes on, unless the task was not done.

    Raises:
        Refused: no person says so, or the task's outcome is not unknown.
    """
    require_person(command, "say what became of a call")
    run = known_run(draft, command.run_id)
    kept_graph(run)
    if run.task(data.task_id).status != "unknown":
        raise NotWaiting(f"{data.task_id} of {run.run_id} is {run.task(data.task_id).status}, not unknown")
    if _stopped(run) and data.resolution == "retry":
        raise NotWaiting(f"{run.run_id} is or was stopped; say whether {data.task_id} was done or not")
    revived = _revives(run, data.resolution)
    if revived:
        check_room(draft)
    _settle(draft, run, data.task_id, data.resolution, decision)
    _go_on(draft, run.run_id, decision if revived else None)


def answer_inquiry(draft: Draft, outcome: CallEnded) -> bool:
    """Settle the task of unknown outcome that a call asked about; whether it was such a call.

    What is done lets its run go on, as a person's word would, where the session has room for it.
    """
    found = find_inquiry(draft, outcome.call_id)
    if found is None:
        return False
    unknown_call_id, inquiry = found
    if outcome.status != "ok" or outcome.result is None:
        give_up(draft, unknown_call_id, failure_of(outcome), answered=True)
        return True
    try:
        done = verdict(draft, inquiry, payload_value(outcome.result))
    except PMLError as error:
        give_up(draft, unknown_call_id, as_failure(error), answered=True)
        return True
    _conclude(draft, inquiry, "done" if done else "not_done")
    return True


def _conclude(draft: Draft, inquiry: Inquiry, resolution: Resolution) -> None:
    run = draft.run(inquiry.run_id)
    said = sanitise_text(f"{inquiry.done} is {'true' if resolution == 'done' else 'false'}")
    decision = Decision(decided_by=f"verify:{inquiry.tool}", reason=said, command_hash="")
    revived = _revives(run, resolution) and _has_room(draft)
    _settle(draft, run, inquiry.task_id, resolution, decision, late=True, inquiry=inquiry)
    _go_on(draft, run.run_id, decision if revived else None)


def _stopped(run: Run) -> bool:
    """Whether nothing of a run begins any more, also not again."""
    return run.waits.abort is not None or run.status == "aborted"


def _revives(run: Run, resolution: Resolution) -> bool:
    return run.status == "failed" and resolution != "not_done" and len(run.unknown) == 1


def _has_room(draft: Draft) -> bool:
    try:
        check_room(draft)
    except SessionFull:
        return False
    return True


def _go_on(draft: Draft, run_id: str, revived_by: Decision | None) -> None:
    if revived_by is not None:
        take_up(draft, draft.run(run_id), (), revived_by)
        begin(draft, run_id)
    elif draft.run(run_id).live:
        advance(draft, run_id)


def answer_late(draft: Draft, outcome: CallEnded) -> bool:
    """Settle the task of unknown outcome whose call is answered after all; whether there was one.

    A run that has ended stays ended: a retry goes on from what is known now.
    """
    found = _waiting_for(draft, outcome.call_id)
    if found is None:
        return False
    run, task_id = found
    if outcome.status == "ok" and outcome.result is not None:
        _settle(draft, run, task_id, "done", NOBODY, late=True)
    elif not uncertain(outcome):
        _settle(draft, run, task_id, "not_done", NOBODY, late=True, error=failure_of(outcome))
    if draft.run(run.run_id).live:
        advance(draft, run.run_id)
    return True


def _waiting_for(draft: Draft, call_id: str) -> tuple[Run, str] | None:
    if call_id not in draft.session.doubtful:
        return None
    return next(
        (
            (run, name)
            for run in draft.runs
            for name in run.unknown
            if (call := run.task(name).call) is not None and call.call_id == call_id
        ),
        None,
    )


def _settle(
    draft: Draft,
    run: Run,
    task_id: str,
    resolution: Resolution,
    decision: Decision,
    *,
    late: bool = False,
    error: CallError | None = None,
    inquiry: Inquiry | None = None,
) -> None:
    asking = draft.session.inquiries.get(_call_id(run, task_id))
    task, graph = run.task(task_id), kept_graph(run)
    roots = {"done": {task_id}, "retry": {task_id}, "not_done": set[str]()}[resolution]
    opened = () if _stopped(run) else with_dependents(run, graph, roots)
    if resolution == "done":
        opened = tuple(name for name in opened if name != task_id)
    resolved = TaskResolved(
        **decision.fields(),
        task_ids=opened,
        after_layer=layer_before(run, graph, opened) if opened else run.layer,
        task_id=task_id,
        attempt=task.attempt,
        layer=run.node(task_id).layer,
        tool=run.node(task_id).tool,
        call_id=_call_id(run, task_id),
        resolution=resolution,
        late=late,
        error=safe_error(error) if error else None,
        verified_by=inquiry.call.call_id if inquiry and inquiry.call else None,
        **(_result(draft) if resolution == "done" else {}),
    )
    draft.emit(resolved, run)
    if inquiry is None and asking is not None and asking.call is not None:
        draft.cancel(run, asking.call.call_id, "settled")


def _call_id(run: Run, task_id: str) -> str:
    call = run.task(task_id).call
    return call.call_id if call else ""


def _result(draft: Draft) -> dict[str, Any]:
    """The value that this very input brings."""
    value = payload_value(draft.payload(draft.source.address))
    return {
        "result": sanitise(value),
        "preview": preview(value),
        "result_ref": coordinate_of(draft.source.address),
        "result_hash": value_hash(value, draft.catalog.policy.hash_key),
        "result_bytes": len(canonical_json(value)),
    }
