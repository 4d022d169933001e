"""Where a run waits between two layers, and for whose word (DESIGN §5; spec story 12.6)."""

from __future__ import annotations

from pml.processors.workflow.catalog import Policy
from pml.processors.workflow.draft import Draft
from pml.processors.workflow.evolve_decisions import failures
from pml.processors.workflow.graph import Graph
from pml.processors.workflow.state import Run
from pml.schemas.events import CheckpointReached, DecisionRequired, PauseReason
from pml.schemas.times import to_rfc3339
from pml.schemas.workflow import Options

PER_LAYER, ON_ERROR, MANUAL = "per_layer", "on_error", "manual"
POINTS = frozenset({PER_LAYER, ON_ERROR, MANUAL})
"""The words of `decision_points`; anything else there is the id of a task."""


def pause_reason(run: Run, graph: Graph, following: int | None) -> PauseReason | None:
    """Why the run waits before the layer `following`, or before its end where that is None.

    Between two layers for the agent's word, after a failure, or after a task that the author named.
    A layer that somebody's decision released is released without another one.
    """
    options, target = graph.options, _target(graph, following)
    if run.layer < 0 or run.waits.cleared == target or run.waits.abort is not None:
        return None
    if _per_layer(options) and following is not None:
        return "per_layer"
    if ON_ERROR in options.decision_points and len(failures(run)) > run.waits.errors:
        return "on_error"
    named = set(options.decision_points).intersection(graph.layers[run.layer]) - POINTS
    return "manual" if any(run.task(name).status != "skipped" for name in named) else None


def pause(draft: Draft, run_id: str, because: PauseReason, following: int | None) -> None:
    """Wait for a decision before the layer `following`."""
    run = draft.run(run_id)
    assert run.graph is not None
    checkpoint_id, failed = f"k{run.waits.checkpoints + 1}", failures(run)
    reached = CheckpointReached(
        checkpoint_id=checkpoint_id,
        because=because,
        layer=run.layer,
        next_layer=following,
        task_ids=run.graph.layers[run.layer],
        failed=failed,
    )
    draft.emit(reached, run)
    options, policy = run.graph.options, draft.catalog.policy
    required = DecisionRequired(
        checkpoint_id=checkpoint_id,
        following=_target(run.graph, following),
        errors=len(failed),
        deadline_at=to_rfc3339(draft.now_ms + _patience_ms(options, policy)),
        on_timeout=options.on_timeout or policy.on_timeout,
    )
    draft.emit(required, run)


def _target(graph: Graph, following: int | None) -> int:
    return len(graph.layers) if following is None else following


def _per_layer(options: Options) -> bool:
    return options.per_layer_validation or PER_LAYER in options.decision_points


def _patience_ms(options: Options, policy: Policy) -> int:
    given_s = options.decision_timeout_s
    return policy.decision_timeout_ms if given_s is None else round(given_s * 1_000)
