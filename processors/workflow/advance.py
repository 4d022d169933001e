"""A run moves on: decisions are taken, layers released, the run ends (DESIGN §5)."""

from __future__ import annotations

from typing import Any

from pml.processors.workflow import conditions
from pml.processors.workflow.arguments import Resolved, Unresolved, resolve_strictly
from pml.processors.workflow.asking_steps import begin_step, may_step
from pml.processors.workflow.checkpoints import pause, pause_reason
from pml.processors.workflow.draft import Draft, full_expression
from pml.processors.workflow.folding import awaited
from pml.processors.workflow.graph import OTHERWISE, DecisionNode, Graph, read_by
from pml.processors.workflow.plans import score
from pml.processors.workflow.predicting import begin_prediction, give_way, supersede
from pml.processors.workflow.release import release, takes
from pml.processors.workflow.settling import discard_all, discard_for_task, unused
from pml.processors.workflow.state import Abort, Run
from pml.schemas.errors import PMLError
from pml.schemas.events import BranchTaken, RunAborted, RunCompleted, RunCounts, RunEnded, RunFailed
from pml.schemas.sanitiser import sanitise, sanitise_text
from pml.schemas.workflow import Condition

_REASON_BYTES_MAX = 500


def advance(draft: Draft, run_id: str) -> None:
    """Do everything that the run's state now allows; what is served at once may release more."""
    if awaited(draft.session, run_id):
        return
    while not draft.run(run_id).held:
        _take_branches(draft, run_id)
        run = draft.run(run_id)
        assert run.graph is not None
        following = _next_layer(run, run.graph)
        if not _ended_before(run, run.graph, following):
            return
        because = pause_reason(run, run.graph, following)
        if because is not None:
            pause(draft, run_id, because, following)
            return
        if following is None and may_step(draft, run):
            begin_step(draft, run_id)
            return
        if following is None:
            _end(draft, run_id)
            return
        release(draft, run_id, following)
        give_way(draft, draft.run(run_id))


def _next_layer(run: Run, graph: Graph) -> int | None:
    """The next layer that has a task for which nothing was begun."""
    for number in range(run.layer + 1, len(graph.layers)):
        if any(run.unreleased(name) for name in graph.layers[number]):
            return number
    return None


def _ended_before(run: Run, graph: Graph, following: int | None) -> bool:
    """Whether every task of the layers before this one has ended; of all layers where there is none.

    Asked from the last layer back: what is open is most likely there.
    """
    return all(run.task(name).ended for layer in graph.layers[:following][::-1] for name in layer)


def _take_branches(draft: Draft, run_id: str) -> None:
    run = draft.run(run_id)
    assert run.graph is not None
    for decision in run.graph.decisions.values():
        open_still = decision.id not in run.decisions
        if open_still and all(run.task(name).ended for name in decision.references):
            draft.emit(_branch(draft, run, decision), run)
            settle_branches(draft, run_id)


def settle_branches(draft: Draft, run_id: str) -> None:
    """A decision was taken: what was begun for a branch that is closed now ends, and plans are scored.

    What a task has joined stays: it may be of another run, and what the call was begun for replanned away.
    """
    run = draft.run(run_id)
    early = {entry.task_id for entry in unused(draft, run_id)}
    unsure = {task_id for task_id, plan in run.plans.items() if plan.confidence < plan.threshold}
    for task_id in sorted(early | unsure):
        conditions = _conditions(run, task_id)
        taken = [takes(run, item.node, item.outcome) for item in conditions if item.node in run.decisions]
        if not all(taken):
            discard_for_task(draft, run_id, task_id, "branch_not_taken")
        elif task_id in unsure and len(taken) == len(conditions):
            score(draft, run_id, task_id, "branch_taken", success=True)


def _conditions(run: Run, task_id: str) -> list[Condition]:
    """What a task runs under: its own conditions, and those of what it reads that has not run.

    Each task is looked at once, however many read it.
    """
    found: list[Condition] = []
    seen, waiting = {task_id}, [task_id]
    while waiting:
        node = run.node(waiting.pop())
        found += node.conditions
        unread = {name for name in node.references if not run.task(name).ended} - seen
        seen |= unread
        waiting += unread
    return found


def _branch(draft: Draft, run: Run, decision: DecisionNode) -> BranchTaken:
    """What a decision came to. A value is written only where a branch names it: it may be anything."""
    assert run.graph is not None
    try:
        outcome = _outcome(draft, run, decision)
    except (conditions.ConditionError, PMLError) as error:
        reason = sanitise_text(str(error), _REASON_BYTES_MAX)
        return BranchTaken(decision_id=decision.id, outcome="error", reason=reason)
    known = outcome in {"true", "false"} or outcome in run.graph.outcomes_of(decision.id)
    return BranchTaken(decision_id=decision.id, outcome=outcome if known else OTHERWISE)


def _outcome(draft: Draft, run: Run, decision: DecisionNode) -> str:
    """
    Raises:
        ConditionError: the expression has no certain value.
        PayloadGone: the command, or a result it reads, is past its retention.
    """
    for name in sorted(decision.references):
        address = run.task(name).result
        if address is not None:
            draft.payload(address)
    expression = full_expression(draft.payload(run.written_at(decision.plan)), decision.id)
    values = draft.values(run)
    results = {name: values.results[name] for name in decision.references if name in values.results}
    return conditions.outcome(expression, {conditions.CONTEXT: values.context} | results)


def fail_run(draft: Draft, run_id: str, error: PMLError) -> None:
    """End a run that cannot go on for a reason of its own."""
    run = draft.run(run_id)
    told = {**error.as_dict(), "message": sanitise_text(error.message), "details": sanitise(error.details)}
    end_as(draft, run_id, RunFailed(**summary(draft, run), error=told))


def _end(draft: Draft, run_id: str) -> None:
    discard_all(draft, run_id, reason="unused")
    run = draft.run(run_id)
    end_as(draft, run_id, _ended(draft, run))


def end_as(draft: Draft, run_id: str, ended: RunEnded) -> None:
    """End a run so: what was predicted before it and still runs was wrong, and what comes next is asked."""
    run = draft.run(run_id)
    draft.emit(ended, run)
    supersede(draft, run)
    begin_prediction(draft, run_id)


def _ended(draft: Draft, run: Run) -> RunEnded:
    fields, abort = summary(draft, run), run.waits.abort
    if abort is not None:
        return RunAborted(**fields, error=_aborted(run, abort), aborted_by=abort.by, reason=abort.reason)
    error = _error(run, late=draft.now_ms >= run.deadline_ms)
    return RunFailed(**fields, error=error) if error else RunCompleted(**fields, **_result(draft, run))


def _result(draft: Draft, run: Run) -> dict[str, Any]:
    """What a run came to, or why that is nothing."""
    assert run.graph is not None
    if run.graph.result is None:
        return {}
    try:
        found = _resulting(draft, run)
    except PMLError as error:
        return {"result_error": sanitise_text(error.message, _REASON_BYTES_MAX)}
    if isinstance(found, Unresolved):
        return {"result_error": sanitise_text(found.message, _REASON_BYTES_MAX)}
    return {"result": sanitise(found.arguments.get("result"))}


def _resulting(draft: Draft, run: Run) -> Resolved | Unresolved:
    """
    Raises:
        PayloadGone: the command, or a result it reads, is past its retention.
    """
    assert run.graph is not None
    results = (run.task(name).result for name in sorted(read_by(run.graph.result)))
    for address in (run.payload, *run.replans, *results):
        if address is not None:
            draft.payload(address)
    written = draft.result_of(run)
    return resolve_strictly({"result": written} if written else {}, draft.values(run))


def _aborted(run: Run, abort: Abort) -> dict[str, Any]:
    """What the end of a stopped run says; an unsafe call of unknown outcome is named."""
    unknown = [task_id for task_id, task in run.tasks.items() if task.status == "unknown"]
    if abort.code == "DECISION_TIMEOUT":
        message = "nobody decided in time; decide sooner, or set options.decision_timeout_s or on_timeout"
    else:
        message = f"stopped by {abort.by}" + (f": {abort.reason}" if abort.reason else "")
    return as_error(abort.code, message, unknown)


def summary(draft: Draft, run: Run) -> dict[str, Any]:
    """What the last event of a run says of it, but for the error."""
    assert run.graph is not None
    statuses = [task.status for task in run.tasks.values()]
    counts = RunCounts(
        tasks=len(run.graph.nodes),
        completed=statuses.count("completed"),
        failed=statuses.count("failed"),
        skipped=statuses.count("skipped"),
        unknown=statuses.count("unknown"),
        hits=run.counts.hits,
        misses=run.counts.misses,
        wasted=run.counts.wasted,
        saved_ms=round(run.counts.saved_ms, 3),
    )
    return {
        "executed_path": run.path,
        "decisions": dict(run.decisions),
        "workflow_type": run.workflow_type if run.decisions else None,
        "capability_id": run.capability_id,
        "counts": counts,
        "duration_ms": draft.now_ms - run.started_ms,
    }


def _error(run: Run, late: bool) -> dict[str, Any] | None:
    """Why a run failed; None where it completed."""
    unknown = [task_id for task_id, task in run.tasks.items() if task.status == "unknown"]
    if unknown:
        names = ", ".join(unknown)
        message = f"nobody knows whether {names} happened; check at the tool's side before you repeat it"
        return as_error("OUTCOME_UNKNOWN", message, unknown)
    unstarted = [task_id for task_id, task in run.tasks.items() if task.skip_reason == "run_ended"]
    assert run.graph is not None
    if unstarted or (late and (run.first_failure or run.sandbox or not run.graph.nodes)):
        return as_error("RUN_TIMEOUT", "the run took longer than options.timeout_s; raise it", unstarted)
    if run.first_failure:
        message = f"task {run.first_failure} failed; results so far stand"
        return as_error("TASK_FAILED", message, [run.first_failure])
    return None


def as_error(code: str, message: str, tasks: list[str]) -> dict[str, Any]:
    """The error of a run; programs read the tasks in its details."""
    return {"code": code, "message": message, "retryable": False, "details": {"tasks": tasks}}
