"""How likely a decision comes to an outcome: counts of ended runs (DESIGN §6, branch statistics)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import quote, unquote

# The probability that the orchestrator knows is never further off than this.
TELL_FROM = 0.01
# A decision has as many outcomes as its workflow names; a type whose workflows differ may have more.
OUTCOMES_MAX = 50
OTHER_OUTCOMES = "(other)"


@dataclass(frozen=True, slots=True)
class BranchCounts:
    """How often each outcome came, and the counts that were told last."""

    counts: Mapping[str, int] = field(default_factory=dict)
    told: Mapping[str, int] = field(default_factory=dict)

    @property
    def stale(self) -> bool:
        """Whether what was told is off by too much for one of the outcomes."""
        return any(
            abs(branch_probability(self.counts, outcome) - branch_probability(self.told, outcome))
            >= TELL_FROM
            for outcome in self.counts
        )


def branch_key(tenant: str, workflow_type: str, decision_id: str) -> str:
    """The name of a decision of a workflow type: the id of its catalog record."""
    return "/".join((tenant, quote(workflow_type, safe=""), quote(decision_id, safe="")))


def branch_parts(key: str) -> tuple[str, str, str]:
    """Tenant, workflow type and decision of a key.

    Raises:
        ValueError: it is no such key.
    """
    tenant, workflow_type, decision_id = key.split("/")
    return tenant, unquote(workflow_type), unquote(decision_id)


def branch_probability(counts: Mapping[str, int], outcome: str) -> float:
    """How likely an outcome is: (k + 1) / (n + 2), one half where nothing is known."""
    return (counts.get(outcome, 0) + 1) / (sum(counts.values()) + 2)


def count_outcome(before: BranchCounts, outcome: str) -> BranchCounts:
    """One more run whose decision came to this."""
    counts = before.counts
    name = outcome if outcome in counts or len(counts) < OUTCOMES_MAX else OTHER_OUTCOMES
    return replace(before, counts={**counts, name: counts.get(name, 0) + 1})
