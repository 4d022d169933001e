"""How long a recorded call takes where whoever makes it knows nothing but the call."""

from __future__ import annotations

import random

from benchmarks.speculation.sample import SIGMA

MEDIAN_S = 1.5


def drawn_s(seed: int, key: bytes, median_s: float = MEDIAN_S) -> float:
    """Seconds, lognormal, the same for the same call."""
    return median_s * random.Random(f"{seed}/".encode() + key).lognormvariate(0.0, SIGMA)
