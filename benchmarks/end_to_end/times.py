"""How long a recorded call takes where whoever makes it knows nothing but the call and its session."""

from __future__ import annotations

import random

from benchmarks.speculation.sample import SIGMA

MEDIAN_S = 1.5


def drawn_s(trace_id: str, key: bytes, median_s: float = MEDIAN_S) -> float:
    """Seconds, lognormal, the same whenever a session makes the same call.

    In another session it takes another time: else what a few frequent calls happen to take would decide.
    """
    return median_s * random.Random(f"{trace_id}/".encode() + key).lognormvariate(0.0, SIGMA)
