"""What a step costs, from how often it went well and how much of what it needs is known to be provided."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pml.processors.learning.hypergraph import Weights

# What schemas do not show may be provided all the same: it makes a step dear, not impossible.
COVERAGE_LEAST = 0.01


def hyperedge_weights(successes: ArrayLike, attempts: ArrayLike, coverage: ArrayLike) -> Weights:
    """Weight = −ln((successes + 1) ÷ (attempts + 2)) − ln(max(coverage, 0.01)).

    The first part is the rate of success with the rule of succession, as for branches (DESIGN §6); the
    second is 0 where everything is covered. With the cost `sum`, e^−cost is the probability that every
    step goes well and has what it needs, were they independent and nothing shared; with `bottleneck`, that
    of the weakest step.

    Args:
        successes: [hyperedges], runs that went well, decayed counts too.
        attempts: [hyperedges], all runs, at least as many.
        coverage: [hyperedges], share in [0, 1] of the required inputs that provides edges cover; 1 for
        none required.

    Returns:
        float64 [hyperedges], above 0.

    Raises:
        ValueError: lengths differ, or a number is outside of its range.
    """
    good, tried, covered = (np.asarray(part, dtype=np.float64) for part in (successes, attempts, coverage))
    if not good.shape == tried.shape == covered.shape or good.ndim != 1:
        raise ValueError("one number of successes, attempts and coverage a hyperedge is needed")
    if not np.all((good >= 0) & (good <= tried) & np.isfinite(tried)):
        raise ValueError("successes lie between 0 and the attempts")
    if not np.all((covered >= 0) & (covered <= 1)):
        raise ValueError("coverage lies in [0, 1]")
    return np.asarray(-np.log((good + 1) / (tried + 2)) - np.log(np.maximum(covered, COVERAGE_LEAST)))
