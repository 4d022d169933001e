"""How much may be risked: the one knob `speculation.budget` (DESIGN §4, condition 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

BudgetName = Literal["off", "low", "normal", "high"]


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of one session."""

    concurrent: int
    calls: int
    wasted_ms_per_hour: int


BUDGETS: dict[BudgetName, Budget] = {
    "off": Budget(0, 0, 0),
    "low": Budget(1, 20, 30_000),
    "normal": Budget(3, 100, 300_000),
    "high": Budget(8, 500, 3_000_000),
}
