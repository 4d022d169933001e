"""Tasks for a run that has begun: checked like any workflow, and told as `run.expanded` (ADR 13)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pml.processors.workflow.check import checked_graph
from pml.processors.workflow.definitions import safe_definition
from pml.processors.workflow.draft import Draft, full_context
from pml.processors.workflow.folding import coordinate_of
from pml.processors.workflow.graph import build
from pml.schemas.errors import WorkflowInvalid
from pml.schemas.events import RunExpanded
from pml.schemas.structure import StructureParameter
from pml.schemas.workflow import Workflow


def expanded(
    draft: Draft,
    run_id: str,
    workflow: Workflow,
    parameters: Iterable[StructureParameter],
    capability_id: str | None,
) -> RunExpanded:
    """What tells a run its first tasks, which the input that is being decided has written down in full.

    Raises:
        WorkflowInvalid: they cannot run, or not with this context.
    """
    run = draft.run(run_id)
    check_parameters(parameters, full_context(draft.payload(run.payload)))
    checked_graph(workflow, draft.catalog.servers, constants=True)
    definition, number = safe_definition(workflow), len(run.replans) + 1
    graph = build(workflow, {}, number)
    return RunExpanded(
        number=number,
        capability_id=capability_id,
        workflow_type=workflow.workflow_type or capability_id or run.workflow_type,
        definition=definition,
        kept={},
        payload_ref=coordinate_of(draft.source.address),
        layers=len(graph.layers),
        tasks=len(graph.nodes),
    )


def with_options(draft: Draft, run_id: str, workflow: Workflow) -> Workflow:
    """A workflow with the options of the run that it comes to."""
    graph = draft.run(run_id).graph
    assert graph is not None
    return workflow.model_copy(update={"options": graph.options})


def check_parameters(parameters: Iterable[StructureParameter], context: dict[str, Any]) -> None:
    """See that all is given that a workflow or program takes.

    Raises:
        WorkflowInvalid: the context does not give all that is taken.
    """
    absent = [item.name for item in parameters if item.required and item.name not in context]
    if absent:
        message = f"the run takes {', '.join(absent)}, which the context does not give"
        raise WorkflowInvalid("MISSING_PARAMETER", message, missing=absent)
