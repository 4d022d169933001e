"""What is known of a tool or capability beside its text: a bounded push, so that it never decides alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

# In log odds: at the middle, 0.5 becomes 0.62. Less than what one standard deviation of the text is worth.
PRIOR_MOST = 0.5
SHARES = {"success": 0.5, "recency": 0.25, "page_rank": 0.25}


@dataclass(frozen=True, slots=True)
class Standing:
    """Each from 0 to 1, and 0 where it is not known: good ends, how lately used, PageRank ÷ the most."""

    success: float = 0.0
    recency: float = 0.0
    page_rank: float = 0.0


def prior(standing: Standing | None) -> float:
    """What is added to the log odds, 0 to `PRIOR_MOST`; a number out of its range counts as the nearest."""
    if standing is None:
        return 0.0
    known: Mapping[str, float] = {name: getattr(standing, name) for name in SHARES}
    return PRIOR_MOST * sum(share * _within(known[name]) for name, share in SHARES.items())


def _within(value: float) -> float:
    return min(1.0, max(0.0, value)) if isfinite(value) else 0.0
