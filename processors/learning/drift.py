"""Whether a served model does worse than its best baseline did where both were judged, and what serves then.

A model was promoted because it was surely right more often than the best baseline on sessions that it had
not seen. Where it is surely right less often than that on the sessions that come, something has changed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from pml.processors.learning.live_hits import Look
from pml.schemas.catalog import ModelFallen, ModelLive, ModelRecord
from pml.schemas.times import from_rfc3339

DEVIATIONS = 3.0
"""Half the width of the interval, in standard deviations: a window is looked at three times, windows follow
each other for ever, and outcomes of one session depend on each other. Of a model that is just as good as the
baseline one look in 740 would find the opposite."""
FALLEN_MOST = 10


def wilson_interval(hits: int, outcomes: int, deviations: float = DEVIATIONS) -> tuple[float, float]:
    """Where the true rate lies that gave so many hits (Wilson 1927).

    Args:
        hits: 0 to `outcomes`.
        outcomes: at least 1.
        deviations: standard deviations on each side; 1.96 for 95 %, 3 for 99.7 %.

    Returns:
        Both ends, 0 to 1.
    """
    rate, squared = hits / outcomes, deviations * deviations
    centre = (rate + squared / (2 * outcomes)) / (1 + squared / outcomes)
    spread = math.sqrt(rate * (1 - rate) / outcomes + squared / (4 * outcomes * outcomes))
    half = deviations * spread / (1 + squared / outcomes)
    return max(0.0, centre - half), min(1.0, centre + half)


def live_record(look: Look, at: str) -> ModelLive:
    """What is told of a model that was counted; `at` is the log's time of the last outcome."""
    window = look.window
    low, high = wilson_interval(window.hits, window.outcomes)
    return ModelLive(
        model_id=look.model,
        outcomes=window.outcomes,
        hits=window.hits,
        hit_1=window.hits / window.outcomes,
        low=low,
        high=high,
        since=window.since,
        at=at,
    )


def has_fallen(live: ModelLive, promoted: ModelRecord) -> bool:
    """Whether what serves is surely worse than its best baseline was.

    Outcomes from before the promotion say nothing: a person who promotes a model again means it.
    """
    if live.model_id != promoted.model_id:
        return False
    since_promotion = from_rfc3339(live.since) >= from_rfc3339(promoted.promoted_at)
    return since_promotion and live.high < promoted.baseline_hit_1


def fall(live: ModelLive, promoted: ModelRecord) -> ModelFallen:
    """What is written down of a model that has fallen."""
    why = (
        f"live hit@1 {live.hit_1:.3f} [{live.low:.3f}, {live.high:.3f}] in {live.outcomes} predictions since "
        f"{live.since}: below the {promoted.baseline_hit_1:.3f} of {promoted.baseline}, the best baseline "
        f"when it was trained (its own was {promoted.hit_1:.3f})"
    )
    return ModelFallen(model_id=live.model_id, why=why, at=live.at)


def with_fallen(fallen: Sequence[ModelFallen], one: ModelFallen) -> tuple[ModelFallen, ...]:
    """Those that were rolled back, the latest first, at most ten."""
    others = tuple(item for item in fallen if item.model_id != one.model_id)
    return (one, *others)[:FALLEN_MOST]


def successors(previous: Sequence[str], fallen: Sequence[ModelFallen], there: Collection[str]) -> list[str]:
    """The models that may serve instead, the best choice first: promoted before, there, and not rolled back.

    Args:
        previous: what was promoted before, the latest first.
        there: the models that can be loaded.
    """
    out = {item.model_id for item in fallen}
    return [name for name in previous if name in there and name not in out]
