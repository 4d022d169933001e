"""Figures: what was measured, what its baseline was in the same rounds, and what the ratio must hold."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Sense = Literal["at least", "at most"]


@dataclass(frozen=True, slots=True)
class Bound:
    """What a ratio must hold (`limit`) and what it is to reach (`aim`)."""

    sense: Sense
    limit: float
    aim: float | None = None

    def holds(self, ratio: float) -> bool:
        """Whether the ratio is on the right side; the limit itself is."""
        return ratio >= self.limit if self.sense == "at least" else ratio <= self.limit


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of PML and of its baseline: one value a round, both in `unit`.

    The ratio is PML's value divided by the baseline's. Without a bound it only informs.

    Raises:
        ValueError: the two sides do not have the same rounds, or a baseline is zero.
    """

    name: str
    unit: str
    values: tuple[float, ...]
    baseline: tuple[float, ...]
    bound: Bound | None = None
    note: str = ""

    def __post_init__(self) -> None:
        if not self.values or len(self.values) != len(self.baseline):
            raise ValueError(f"{self.name}: {len(self.values)} values beside {len(self.baseline)} baselines")
        if 0 in self.baseline:
            raise ValueError(f"{self.name}: nothing can be divided by a baseline of zero")

    @property
    def ratios(self) -> tuple[float, ...]:
        """The ratio of each round."""
        return tuple(value / other for value, other in zip(self.values, self.baseline, strict=True))

    @property
    def ratio(self) -> float:
        """The median of the rounds' ratios."""
        return statistics.median(self.ratios)

    @property
    def held(self) -> bool | None:
        """Whether the ratio holds its bound; None where there is none."""
        return None if self.bound is None else self.bound.holds(self.ratio)

    def as_dict(self) -> dict[str, Any]:
        """The figure as JSON-serialisable values."""
        bound = self.bound
        return {
            "name": self.name,
            "unit": self.unit,
            "ratio": round(self.ratio, 4),
            "ratio_min": round(min(self.ratios), 4),
            "ratio_max": round(max(self.ratios), 4),
            "bound": bound.sense if bound else None,
            "limit": bound.limit if bound else None,
            "aim": bound.aim if bound else None,
            "held": self.held,
            "values": [round(value, 3) for value in self.values],
            "baseline": [round(value, 3) for value in self.baseline],
            "note": self.note,
        }


def percentile(samples: Sequence[float], percent: float) -> float:
    """The value that `percent` of the samples do not exceed, interpolated between the two nearest.

    Raises:
        ValueError: there are no samples, or `percent` is not within 0 and 100.
    """
    if not len(samples):
        raise ValueError("there is no percentile of no samples")
    return float(np.percentile(np.asarray(samples, dtype=float), percent))


def arrivals_s(per_s: float, duration_s: float, seed: int) -> list[float]:
    """When events come that do not wait for each other: Poisson, in seconds from the start, ascending."""
    generator = np.random.default_rng(seed)
    gaps = generator.exponential(1 / per_s, size=max(1, round(2 * per_s * duration_s) + 20))
    times = np.cumsum(gaps)
    return [float(time) for time in times[times < duration_s]]


def rate_between(steps: Sequence[tuple[int, int]]) -> float:
    """What was done a second between the first and the last of (time in ms, done so far).

    What was done until the first step is not counted: nobody knows when it began.

    Raises:
        ValueError: there was no time between them.
    """
    (began, done), (ended, all_done) = min(steps), max(steps)
    if ended <= began:
        raise ValueError("everything was done in one step: nothing can be said about its speed")
    return (all_done - done) * 1_000 / (ended - began)
