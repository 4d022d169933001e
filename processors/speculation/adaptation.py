"""How a threshold learns: a moving average over tumbling windows of outcomes (DESIGN §4, Thresholds).

The algorithm is the spike's §3.1, option B, its formula as written: the step grows with the distance from the
target, at most 0.05 a window, and inside the range wanted the threshold is tuned by a tenth of the error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pml.processors.speculation.thresholds import INITIAL

LOWEST, HIGHEST = 0.70, 0.95
TARGET, WANTED_FROM, WANTED_TO = 0.85, 0.80, 0.90
ALPHA = 0.2
WINDOW = 50
STEP_MAX, STEP_SHARE = 0.05, 0.3
TUNED_FROM, TUNED_SHARE = 0.03, 0.1

State = Literal["cold", "drifting", "converged"]
Reason = Literal["too_cautious", "too_bold", "tuned", "kept"]


@dataclass(frozen=True, slots=True)
class Learning:
    """What one context has learned: full windows in `value` and `ema`, the window that fills in the rest."""

    value: float = INITIAL
    ema: float = TARGET
    windows: int = 0
    seen: int = 0
    successes: int = 0

    @property
    def outcomes(self) -> int:
        """All outcomes that were counted."""
        return self.windows * WINDOW + self.seen

    @property
    def state(self) -> State:
        """`cold` before the first full window, then whether the success rate is in the range wanted."""
        if self.windows == 0:
            return "cold"
        return "converged" if WANTED_FROM <= self.ema <= WANTED_TO else "drifting"


@dataclass(frozen=True, slots=True)
class Change:
    """What a full window did."""

    previous: float
    value: float
    ema: float
    success_rate: float
    reason: Reason


def learn(before: Learning, success: bool) -> tuple[Learning, Change | None]:
    """One more outcome; with the change that its window brings, if it is the window's last."""
    seen, successes = before.seen + 1, before.successes + success
    if seen < WINDOW:
        return Learning(before.value, before.ema, before.windows, seen, successes), None
    rate = successes / WINDOW
    ema = ALPHA * rate + (1 - ALPHA) * before.ema
    value, reason = adjusted(before.value, ema)
    return Learning(value, ema, before.windows + 1), Change(before.value, value, ema, rate, reason)


def adjusted(value: float, ema: float) -> tuple[float, Reason]:
    """The threshold after a window that led to this average, and why."""
    error = ema - TARGET
    step = min(STEP_MAX, STEP_SHARE * abs(error))
    if ema > WANTED_TO:
        return _bounded(value - step), "too_cautious"
    if ema < WANTED_FROM:
        return _bounded(value + step), "too_bold"
    if abs(error) > TUNED_FROM:
        return _bounded(value - TUNED_SHARE * error), "tuned"
    return value, "kept"


def _bounded(value: float) -> float:
    return max(LOWEST, min(HIGHEST, value))
