"""What the past of a tool says about trying it again (the spike, §4: +0.02 per past success).

A success of the tool in this context adds 0.02 and a failure takes 0.02, together at most 0.10 either way.
"""

from __future__ import annotations

from pml.schemas.memory import ToolPast

STEP = 0.02
INFLUENCE_MAX = 0.10
INFLUENCED_TO = 0.99


def influence(past: ToolPast) -> float:
    """What is added to a confidence."""
    moved = STEP * (past.successes - past.failures)
    return round(max(-INFLUENCE_MAX, min(INFLUENCE_MAX, moved)), 4)


def influenced(confidence: float, moved: float | None) -> float:
    """A confidence after that; 1 stays what it was, and is never reached: it is for what is certain."""
    if not moved:
        return confidence
    return round(max(0.0, min(INFLUENCED_TO, confidence + moved)), 6)
