"""Where the threshold goes for predictors of different calibration: a simulation from one seed.

A predictor states confidences; its calibration says how often a candidate of that confidence is right. What
reaches the threshold is speculated, what misses it by little is scored, both are outcomes (DESIGN §4,
Thresholds); the rest is never seen. The success rate has settled where 20 windows in a row keep the average
in the range wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pml.processors.speculation.adaptation import (
    HIGHEST,
    LOWEST,
    WANTED_FROM,
    WANTED_TO,
    WINDOW,
    Learning,
    learn,
)
from pml.processors.workflow.plans import MARGIN

OUTCOMES = 10_000
SETTLED_WINDOWS = 20
SETTLED_WITHIN = 3_000
# Three of the largest steps: chance moves a threshold that is at rest by up to 0.14 (200 seeds).
SWING_MAX = 0.15
_DRAWN = 4_096
# A predictor that is always sure makes no outcome: nobody waits for the last of them.
_CANDIDATES_MAX = 100 * OUTCOMES

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Predictor:
    """How right a predictor is at each confidence, and whether a threshold in bounds can make 85% of it."""

    name: str
    description: str
    right: Callable[[Floats], Floats]
    settles: bool
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """The threshold and the average after so many outcomes."""

    outcomes: int
    threshold: float
    ema: float

    @property
    def wanted(self) -> bool:
        """Whether the average is in the range."""
        return WANTED_FROM <= self.ema <= WANTED_TO


@dataclass(frozen=True, slots=True)
class Simulated:
    """What became of one predictor. `swing` is how far the threshold still moved after it had settled."""

    predictor: Predictor
    windows: tuple[Window, ...]
    settled_after: int | None
    swing: float
    verdict: str

    @property
    def settled(self) -> bool:
        """In time, and without swinging."""
        in_time = self.settled_after is not None and self.settled_after <= SETTLED_WITHIN
        return in_time and self.swing <= SWING_MAX

    @property
    def as_expected(self) -> bool:
        """Whether it settled exactly if it can."""
        return self.settled is self.predictor.settles

    def as_dict(self) -> dict[str, Any]:
        """As JSON-serialisable values."""
        last = self.windows[-1] if self.windows else None
        return {
            "predictor": self.predictor.name,
            "calibration": self.predictor.description,
            "settles": self.settled,
            "settled_after": self.settled_after,
            "swing": round(self.swing, 4),
            "threshold": round(last.threshold, 4) if last else None,
            "success_rate": round(last.ema, 4) if last else None,
            "verdict": self.verdict,
        }


def _shifted(by: float) -> Callable[[Floats], Floats]:
    return lambda confidence: np.clip(confidence + by, 0.0, 1.0)


PREDICTORS = (
    Predictor("well_calibrated", "right as often as it says", _shifted(0.0), settles=True),
    Predictor("over_confident", "right 0.10 less often than it says", _shifted(-0.10), settles=True),
    Predictor("under_confident", "right 0.05 more often than it says", _shifted(0.05), settles=True),
    Predictor("far_over_confident", "right 0.30 less often than it says", _shifted(-0.30), settles=False),
    Predictor("far_under_confident", "right 0.15 more often than it says", _shifted(0.15), settles=False),
    Predictor(
        "random", "right half of the time, whatever it says", lambda c: np.full_like(c, 0.5), settles=False
    ),
    Predictor("certain", "always says 1, and is right", lambda c: c, settles=False, confidence=1.0),
)


def simulate(seed: int, outcomes: int = OUTCOMES) -> tuple[Simulated, ...]:
    """All predictors, each with the same draws; the same seed gives the same answer."""
    return tuple(simulate_one(predictor, seed, outcomes) for predictor in PREDICTORS)


def simulate_one(predictor: Predictor, seed: int, outcomes: int = OUTCOMES) -> Simulated:
    """One predictor until so many outcomes, or until it is clear that there will be none."""
    learning = Learning()
    windows: list[Window] = []
    for confidence, right in _candidates(predictor, seed):
        if confidence >= 1 or confidence < learning.value - MARGIN:
            continue
        learning, change = learn(learning, right)
        if change is not None:
            windows.append(Window(learning.outcomes, learning.value, learning.ema))
        if learning.outcomes >= outcomes:
            break
    return judged(predictor, tuple(windows))


def _candidates(predictor: Predictor, seed: int) -> Iterator[tuple[float, bool]]:
    generator = np.random.Generator(np.random.PCG64(seed))
    for _ in range(0, _CANDIDATES_MAX, _DRAWN):
        drawn, truth = generator.random(_DRAWN), generator.random(_DRAWN)
        said = drawn if predictor.confidence is None else np.full_like(drawn, predictor.confidence)
        yield from zip(said.tolist(), (truth < predictor.right(said)).tolist(), strict=True)


def judged(predictor: Predictor, windows: tuple[Window, ...]) -> Simulated:
    """Whether these windows have settled, when, and what to say of it."""
    settled_after = _settled_after(windows)
    after = [w.threshold for w in windows if settled_after is not None and w.outcomes >= settled_after]
    swing = max(after) - min(after) if after else 0.0
    return Simulated(predictor, windows, settled_after, swing, _verdict(windows, settled_after, swing))


def _settled_after(windows: tuple[Window, ...]) -> int | None:
    """The outcomes before the first run of windows that all lie in the range."""
    for first in range(len(windows) - SETTLED_WINDOWS + 1):
        if all(window.wanted for window in windows[first : first + SETTLED_WINDOWS]):
            return windows[first].outcomes
    return None


def _verdict(windows: tuple[Window, ...], settled_after: int | None, swing: float) -> str:
    if not windows:
        return "cannot settle: what is certain needs no threshold, so no outcome counts"
    if settled_after is not None:
        told = f"settles within {settled_after} outcomes"
        return told if swing <= SWING_MAX else f"{told}, but swings by {swing:.2f}"
    last = windows[-1]
    if last.threshold >= HIGHEST and last.ema < WANTED_FROM:
        return f"cannot settle: even at {HIGHEST:.2f}, only {last.ema:.0%} are right"
    if last.threshold <= LOWEST and last.ema > WANTED_TO:
        return f"cannot settle: even at {LOWEST:.2f}, {last.ema:.0%} are right"
    return f"did not settle within {len(windows) * WINDOW} outcomes"
