"""What a simulation says of itself: how much was played, what was checked, what went wrong, what ran."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.play import Result

# What a trace shows of what came before; most of it is far from the cause.
TRACE_LINES = 120


@dataclass
class Report:
    """Sums over seeds."""

    seeds: int = 0
    steps: int = 0
    events: int = 0
    void: int = 0
    virtual_s: float = 0.0
    seconds: float = 0.0
    plots: Counter[str] = field(default_factory=Counter)
    checks: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    points: Counter[str] = field(default_factory=Counter)
    eligible: Counter[str] = field(default_factory=Counter)
    failed: list[Result] = field(default_factory=list)

    def add(self, result: Result) -> None:
        """One more seed."""
        self.seeds += 1
        for name in ("steps", "events", "void", "virtual_s", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(result, name))
        self.plots[result.plot] += 1
        for name in ("checks", "faults", "points", "eligible"):
            getattr(self, name).update(getattr(result, name))
        if result.violation is not None:
            self.failed.append(result)

    @property
    def share(self) -> float:
        """The share of eligible calls that were speculated."""
        return self.eligible["speculated"] / max(1, self.eligible["eligible"])

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        violations = [
            {
                "seed": item.seed,
                "plot": item.plot,
                "check": item.violation.check,
                "found": item.violation.found,
            }
            for item in self.failed
            if item.violation is not None
        ]
        return {
            "seeds": self.seeds,
            "seeds_per_s": round(self.seeds / max(self.seconds, 1e-9), 2),
            "steps": self.steps,
            "events": self.events,
            "void_events": self.void,
            "virtual_s": round(self.virtual_s),
            "plots": dict(self.plots),
            "checks": dict(self.checks),
            "faults": dict(self.faults),
            "kill_points": dict(self.points),
            "eligible": dict(self.eligible),
            "eligible_calls_speculated": round(self.share, 3),
            "real_modules": real_modules(),
            "violations": violations,
        }

    def lines(self) -> Iterator[str]:
        """For people."""
        rate = self.seeds / max(self.seconds, 1e-9)
        yield (
            f"{self.seeds} seeds, {rate:.1f} a second, {self.steps} steps, {self.events} events that count, "
            f"{self.void} void, {self.virtual_s:.0f} simulated seconds"
        )
        hits = sum(self.eligible[f"served by {how}"] for how in ("speculation", "joined", "repeat"))
        yield (
            f"eligible calls {self.eligible['eligible']}, speculated {self.eligible['speculated']} "
            f"({self.share:.0%}), served early {hits}"
        )
        for title, counts in (
            ("plays", self.plots),
            ("checks", self.checks),
            ("faults", self.faults),
            ("kill points passed", self.points),
        ):
            yield ""
            yield title
            yield from (f"  {count:>9}  {name}" for name, count in sorted(counts.items()))
        yield ""
        yield "real modules"
        yield from (f"  {name}" for name in real_modules())


def real_modules() -> list[str]:
    """The modules of the product in which a simulation executes functions."""
    kept = ("pml.processors.", "pml.streams.orchestrator.", "pml.streams.log.", "pml.streams.bridge.")
    return sorted(name for name in sys.modules if name.startswith(kept) and name not in NOT_DRIVEN)


# Imported by what is driven, and not driven: Faust, the role's own wiring, real servers and files.
NOT_DRIVEN = frozenset(
    {
        "pml.streams.bridge.backoff",
        "pml.streams.bridge.catalog",
        "pml.streams.bridge.letters",
        "pml.streams.bridge.lines",
        "pml.streams.bridge.listing",
        "pml.streams.bridge.permissions_file",
        "pml.streams.bridge.reaper",
        "pml.streams.bridge.role",
        "pml.streams.bridge.server",
        "pml.streams.bridge.server_log",
        "pml.streams.bridge.servers_file",
        "pml.streams.bridge.session",
        "pml.streams.bridge.stdio",
    }
)


def trace(result: Result) -> Iterator[str]:
    """How a seed came to its violation, in the order of virtual time."""
    violation = result.violation
    assert violation is not None
    yield f"seed {result.seed} ({result.plot}): {violation.check}"
    yield f"  at {violation.at_s:.3f} s: {violation.found}"
    if len(result.diary) > TRACE_LINES:
        yield f"  … {len(result.diary) - TRACE_LINES} lines before these"
    yield from (f"  {at_s:9.3f}  {text[:400]}" for at_s, text in result.diary[-TRACE_LINES:])
    yield f"  again: python -m tests.simulation --seed {result.seed}"
