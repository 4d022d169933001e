"""A run whose program is no DAG asks it to go on, as soon as its calls have ended (ADR 14)."""

from __future__ import annotations

from pml.processors.workflow.draft import Draft
from pml.processors.workflow.internal import begin_internal
from pml.processors.workflow.state import Run
from pml.schemas.stepping import STEP_TOOL

# Twenty seconds is the most that a step may compute, a program that is run again computes all its steps, and
# some wait for a sandbox before.
STEP_TIMEOUT_MS = 120_000


def may_step(draft: Draft, run: Run) -> bool:
    """Whether a run without an open task goes on by asking its program."""
    stopped = run.waits.abort is not None or draft.now_ms >= run.deadline_ms or bool(run.first_failure)
    return run.sandbox is not None and not stopped and not run.unknown


def begin_step(draft: Draft, run_id: str) -> None:
    """Ask the program of a run for what it waits for next; until then the run does not end."""
    run = draft.run(run_id)
    begin_internal(draft, run, STEP_TOOL, {"step": len(run.replans)}, STEP_TIMEOUT_MS)
