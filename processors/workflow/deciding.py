"""Decisions about a run that waits at a checkpoint, and the end of its patience (DESIGN §5)."""

from __future__ import annotations

from pml.processors.workflow.aborting import stop
from pml.processors.workflow.advance import advance
from pml.processors.workflow.consent import NOBODY
from pml.processors.workflow.draft import Draft
from pml.processors.workflow.evolve_decisions import waits_for_approval
from pml.processors.workflow.obedience import Decision, NotWaiting, live_run
from pml.processors.workflow.state import Run
from pml.schemas.commands import Command, RunAbort, RunContinue
from pml.schemas.events import Choice, DecisionMade


def continue_run(draft: Draft, command: Command, data: RunContinue, decision: Decision) -> None:
    """Release the next layer of a run that waits.

    Raises:
        Refused: there is no such run, or it does not wait at this checkpoint.
    """
    run = live_run(draft, command.run_id)
    waiting_at(run, data.checkpoint_id)
    record_choice(draft, run, "continue", decision)
    advance(draft, run.run_id)


def abort_run(draft: Draft, command: Command, _: RunAbort, decision: Decision) -> None:
    """Stop a run that has not ended.

    Raises:
        Refused: there is no such run, it has ended, or it is being stopped already.
    """
    run = live_run(draft, command.run_id)
    if run.waits.abort is not None:
        raise NotWaiting(f"{run.run_id} is being stopped already; it waits for an unsafe call that runs")
    _abort(draft, run, decision)


def reach_decision(draft: Draft, run: Run, checkpoint_id: str) -> None:
    """Nobody decided in time: what `on_timeout` says happens."""
    pause = run.waits.pause
    if pause is None or pause.checkpoint_id != checkpoint_id or pause.deadline_ms > draft.now_ms:
        return
    if pause.on_timeout == "abort":
        _abort(draft, run, NOBODY, timed_out=True)
        return
    record_choice(draft, run, "continue", NOBODY, timed_out=True)
    advance(draft, run.run_id)


def waiting_at(run: Run, checkpoint_id: str | None) -> None:
    """See that a run waits, and at this checkpoint.

    Raises:
        Refused: it waits at none, or at another one than is named.
    """
    pause = run.waits.pause
    if pause is None:
        what = "it waits for a person's approval" if run.status == "waiting" else f"it is {run.status}"
        raise NotWaiting(f"{run.run_id} does not wait at a checkpoint; {what}")
    if checkpoint_id not in {None, pause.checkpoint_id}:
        raise NotWaiting(f"{run.run_id} waits at {pause.checkpoint_id}, not at {checkpoint_id}")


def _abort(draft: Draft, run: Run, decision: Decision, timed_out: bool = False) -> None:
    record_choice(draft, run, "abort", decision, timed_out)
    stop(draft, run.run_id, "options.decision_timeout_s" if timed_out else "run.abort")
    advance(draft, run.run_id)


def record_choice(
    draft: Draft, run: Run, choice: Choice, decision: Decision, timed_out: bool = False
) -> None:
    """Write down what becomes of a run that waits, or is to stop."""
    pause = run.waits.pause
    made = DecisionMade(
        **decision.fields(),
        checkpoint_id=pause.checkpoint_id if pause else None,
        choice=choice,
        timed_out=timed_out,
        run_status="waiting" if choice != "abort" and waits_for_approval(run) else "running",
    )
    draft.emit(made, run)
