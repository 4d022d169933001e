"""What the past of a tool says about trying it again (the spike, §4: +0.02 per past success).

A success of the tool in this context adds 0.02 and a failure takes 0.02, together at most 0.10 either way.
"""

from __future__ import annotations

from pml.schemas.memory import ToolPast

STEP = 0.02
INFLUENCE_MAX = 0.10


def influence(past: ToolPast) -> float:
    """What is added to a confidence."""
    moved = STEP * (past.successes - past.failures)
    return round(max(-INFLUENCE_MAX, min(INFLUENCE_MAX, moved)), 4)


def influenced(confidence: float, moved: float) -> float:
    """A confidence that is still one."""
    return round(max(0.0, min(1.0, confidence + moved)), 6)
