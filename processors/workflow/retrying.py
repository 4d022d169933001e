"""`run.retry`: a failed run goes on from what failed; what completed is not repeated."""

from __future__ import annotations

from pml.processors.workflow.beforehand import begin
from pml.processors.workflow.draft import Draft
from pml.processors.workflow.graph import Graph
from pml.processors.workflow.obedience import Decision, NotWaiting, known_run
from pml.processors.workflow.reopening import layer_before, undecided, unfinished, with_dependents
from pml.processors.workflow.starting import check_room, run_timeout_ms
from pml.processors.workflow.state import Run
from pml.schemas.commands import Command, RunRetry
from pml.schemas.errors import Refused
from pml.schemas.events import RunRetried
from pml.schemas.times import to_rfc3339


class RunGivenUp(Refused):
    """A session keeps what a retry needs of its newest failed runs only."""

    code = "RUN_GIVEN_UP"


class OutcomeUnknown(Refused):
    """Somebody has to find out what happened first."""

    code = "OUTCOME_UNKNOWN"


def retry_run(draft: Draft, command: Command, _: RunRetry, decision: Decision) -> None:
    """Begin what failed, and what was skipped for it, once more.

    Raises:
        Refused: the run did not fail, is not kept any more, or something of it is unknown.
    """
    run = known_run(draft, command.run_id)
    if run.status != "failed":
        raise NotWaiting(f"{run.run_id} is {run.status}; only a run that failed is retried")
    graph = kept_graph(run)
    if run.unknown:
        names = ", ".join(run.unknown)
        raise OutcomeUnknown(f"nobody knows whether {names} happened; settle it first: pml run resolve")
    check_room(draft)
    take_up(draft, run, with_dependents(run, graph, unfinished(run, graph)), decision)
    begin(draft, run.run_id)


def kept_graph(run: Run) -> Graph:
    """The graph of a run that may be taken up again.

    Raises:
        RunGivenUp: it is not kept.
    """
    if run.graph is None:
        raise RunGivenUp(f"what {run.run_id} needs is not kept any more; submit the workflow again")
    return run.graph


def take_up(draft: Draft, run: Run, opened: tuple[str, ...], decision: Decision) -> None:
    """A failed run goes on, with new time."""
    graph = kept_graph(run)
    retried = RunRetried(
        **decision.fields(),
        task_ids=opened,
        decision_ids=undecided(run, graph),
        after_layer=layer_before(run, graph, opened),
        deadline_at=to_rfc3339(draft.now_ms + run_timeout_ms(draft, graph.options)),
    )
    draft.emit(retried, run)
