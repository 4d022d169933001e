"""Which threshold holds in which context (DESIGN §4, Thresholds; the spike's §3.2, option C).

An outcome teaches four contexts of its tenant, from special to general: its user with its workflow type,
its domain with its type, its type, and all. The first that has learned something holds; what a person set
by hand holds before anything learned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from pml.schemas.base import ThresholdContext
from pml.schemas.catalog import ThresholdLevel, ThresholdRecord

INITIAL = 0.92
"""What holds where nothing was learned or set."""

LEVELS: tuple[ThresholdLevel, ...] = ("user", "domain", "type", "default")


@dataclass(frozen=True, slots=True)
class ThresholdFound:
    """A threshold, the key of the context it is from, and whether a person set it there."""

    value: float
    context_key: str
    manual: bool = False


def context_key(tenant: str, context: ThresholdContext, level: ThresholdLevel) -> str:
    """The name of one of the four contexts: the id of its catalog records."""
    parts = {
        "user": f"user={_quoted(context.user)}/type={_quoted(context.workflow_type)}",
        "domain": f"domain={_quoted(context.domain)}/type={_quoted(context.workflow_type)}",
        "type": f"type={_quoted(context.workflow_type)}",
        "default": "default",
    }
    return f"{tenant}/{parts[level]}"


def context_keys(tenant: str, context: ThresholdContext) -> tuple[str, ...]:
    """The four contexts that an outcome teaches and a threshold is looked up in, special ones first."""
    return tuple(context_key(tenant, context, level) for level in LEVELS)


def find_threshold(
    tenant: str,
    context: ThresholdContext,
    learned: Mapping[str, ThresholdRecord],
    manual: Mapping[str, float],
) -> ThresholdFound:
    """The threshold of a context: the most special manual one, else the most special learned one."""
    keys = context_keys(tenant, context)
    for key in keys:
        if key in manual:
            return ThresholdFound(manual[key], key, manual=True)
    for key in keys:
        if key in learned:
            return ThresholdFound(learned[key].value, key)
    return ThresholdFound(INITIAL, keys[-1])


def branch_probability(counts: Mapping[str, int], outcome: str) -> float:
    """How likely a decision comes to an outcome: (k + 1) / (n + 2), one half where nothing is known."""
    return (counts.get(outcome, 0) + 1) / (sum(counts.values()) + 2)


def branch_key(tenant: str, workflow_type: str, decision_id: str) -> str:
    """The name of a decision of a workflow type: the id of its catalog record."""
    return f"{tenant}/{_quoted(workflow_type)}/{_quoted(decision_id)}"


def _quoted(text: str) -> str:
    return quote(text, safe="")
