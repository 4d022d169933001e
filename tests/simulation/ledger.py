"""What is checked, how often, and the first time that it did not hold."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.loop import SimulatedLoop


@dataclass(frozen=True, slots=True)
class Violation:
    """A check that failed, when, and what was found."""

    check: str
    at_s: float
    found: str


@dataclass
class Ledger:
    """Counts checks; keeps the first violation, which ends the seed."""

    loop: SimulatedLoop
    counts: Counter[str] = field(default_factory=Counter)
    first: Violation | None = None
    diary: list[tuple[float, str]] = field(default_factory=list)
    broken: asyncio.Event = field(default_factory=asyncio.Event)

    def check(self, name: str, holds: bool, found: Any = "") -> None:
        """Count a check; where it does not hold, say what was found (or the function that tells it)."""
        self.counts[name] += 1
        if not holds:
            self.fail(name, str(found() if callable(found) else found))

    def fail(self, name: str, found: str) -> None:
        """A check did not hold."""
        if self.first is None:
            self.first = Violation(name, self.loop.time(), found)
            self.note(f"VIOLATION {name}: {found}")
            self.broken.set()

    def note(self, text: str) -> None:
        """Something that whoever reads the trace wants to know."""
        self.diary.append((self.loop.time(), text))
