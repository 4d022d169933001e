"""A run is stopped: nothing new begins, safe calls are given up, an unsafe one that runs is awaited."""

from __future__ import annotations

from pml.processors.workflow.consent import withdraw
from pml.processors.workflow.draft import Draft
from pml.processors.workflow.folding import awaited
from pml.processors.workflow.internal import give_up
from pml.processors.workflow.release import skip_task
from pml.processors.workflow.settling import abandon_call, discard_all, fail_task
from pml.processors.workflow.shown import withdraw_all
from pml.schemas.calls import CallError

_STOPPED = CallError(code="ABORTED", type="UNKNOWN", message="the run was aborted")


def stop(draft: Draft, run_id: str, because: str, error: CallError = _STOPPED) -> None:
    """Skip what has not started and give up safe calls; `advance` then ends the run when it can."""
    run = draft.run(run_id)
    assert run.graph is not None
    discard_all(draft, run_id, "aborted")
    for item in awaited(draft.session, run_id):
        give_up(draft, item, error)
        draft.cancel(run, item.call_id, error.code.lower())
    withdraw_all(draft, run_id, "run_ended")
    for node in run.graph.nodes.values():
        task = draft.run(run_id).task(node.id)
        if task.awaits_approval:
            withdraw(draft, run_id, node.id, "run_ended")
        if task.status == "pending":
            skip_task(draft, run_id, node, "run_ended", because)
        elif task.status == "running" and task.call and task.call.effect == "read":
            fail_task(draft, draft.run(run_id), node.id, error)
            abandon_call(draft, draft.run(run_id), task.call, error.code.lower())
