"""Which events of the log teach something, and what (DESIGN §4, Thresholds; §6, branch statistics)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pml.processors.speculation.branches import branch_key
from pml.processors.speculation.thresholds import context_keys
from pml.schemas.base import ThresholdContext
from pml.schemas.catalog import BranchStats, DivergenceRecord, ThresholdRecord

RUN_ENDS = frozenset({"run.completed", "run.failed", "run.aborted"})
CHECKED = frozenset({"speculation.verified", "speculation.diverged"})
OBSERVED = frozenset({"speculation.ended", "speculation.scored", *CHECKED, *RUN_ENDS})
"""The types that can teach something; no other event needs to be decoded."""

# Nobody is to blame for what else a speculation may be discarded for: it counts neither way.
FAILURES = frozenset({"unused", "expired", "branch_not_taken"})


def succeeded(event_type: str, data: Mapping[str, Any]) -> bool | None:
    """Whether a speculation, or a candidate that was only scored, was right; None where it does not count.

    A speculation that was served and then found to be different is told twice: a success, then a failure.
    """
    if data.get("context") is None or data["confidence"] >= 1:
        return None
    if event_type == "speculation.scored":
        return bool(data["success"])
    if event_type == "speculation.diverged":
        return False
    if data["fate"] == "served":
        return True
    return False if data["fate"] == "failed" or data["reason"] in FAILURES else None


def lessons(event_type: str, tenant: str, data: Mapping[str, Any]) -> list[tuple[str, bool | str]]:
    """What an event teaches: keys of catalog records, with a success or with the outcome of a decision."""
    if event_type in RUN_ENDS:
        return _branches(tenant, data)
    checked = _divergence(event_type, data) if event_type in CHECKED else []
    success = None if event_type == "speculation.verified" else succeeded(event_type, data)
    if success is None:
        return checked
    context = ThresholdContext.model_validate(data["context"])
    learned = [(f"{ThresholdRecord.KIND}/{key}", success) for key in context_keys(tenant, context)]
    return [*checked, *learned]


def _divergence(event_type: str, data: Mapping[str, Any]) -> list[tuple[str, bool | str]]:
    """Whether a tool that was called again said the same; nothing where nobody can tell."""
    if event_type == "speculation.verified" and data["outcome"] != "same":
        return []
    return [(f"{DivergenceRecord.KIND}/{data['tool']}", event_type == "speculation.verified")]


def _branches(tenant: str, data: Mapping[str, Any]) -> list[tuple[str, bool | str]]:
    workflow_type = data.get("workflow_type")
    if workflow_type is None:
        return []
    return [
        (f"{BranchStats.KIND}/{branch_key(tenant, workflow_type, decision_id)}", outcome)
        for decision_id, outcome in data["decisions"].items()
    ]
