"""What is learned from a run is learned under a few short names: its user, its domain, its type."""

from __future__ import annotations

from typing import Any

from pml.processors.workflow.state import UNNAMED, Run
from pml.schemas.base import ThresholdContext
from pml.schemas.sanitiser import sanitise_text

NAME_LENGTH_MAX = 100


def learned_name(text: Any) -> str:
    """A name out of an event, where all are sanitised, cut; `default` where there is none."""
    return text[:NAME_LENGTH_MAX] if text and isinstance(text, str) else UNNAMED


def domain_of(context: Any) -> str:
    """The domain that a run's initial context names."""
    return learned_name(context.get("domain")) if isinstance(context, dict) else UNNAMED


def complexity_of(context: Any) -> str:
    """The complexity that a run's initial context names."""
    return learned_name(context.get("complexity")) if isinstance(context, dict) else UNNAMED


def threshold_context(run: Run) -> ThresholdContext:
    """For whom and for what a run speculates."""
    user = learned_name(sanitise_text(run.principal))
    return ThresholdContext(user=user, domain=run.domain, workflow_type=run.workflow_type)
