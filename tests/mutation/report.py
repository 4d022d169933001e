"""What a hunt found: by module, in all, and which mutants live."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table

from tests.mutation.hunting import Verdict
from tests.mutation.survivors import Reasons, noticed

# Of a normal distribution: 95 % lie within so many standard deviations.
DEVIATIONS = 1.959964


@dataclass
class Report:
    """Verdicts, and what is known of survivors.

    Attributes:
        whole: whether every mutant was tried, so that the share is no estimate.
        floor: the share of mutants that have to be killed.
        gone: listed survivors that are no mutants any more.
    """

    reasons: Reasons
    whole: bool
    floor: float
    gone: Sequence[str] = ()
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def tried(self) -> list[Verdict]:
        """What could live at all."""
        return [verdict for verdict in self.verdicts if verdict.fate != "stillborn"]

    @property
    def killed(self) -> int:
        """How many were noticed."""
        return sum(verdict.killed for verdict in self.verdicts)

    @property
    def share(self) -> float:
        """Killed of all that were tried; survivors that are listed count as survivors."""
        return self.killed / max(1, len(self.tried))

    @property
    def unlisted(self) -> list[Verdict]:
        """Survivors without a reason."""
        return [item for item in self.tried if not item.killed and item.mutant.name not in self.reasons]

    @property
    def noticed(self) -> list[str]:
        """Listed survivors that a test kills."""
        return noticed(self.reasons, self.verdicts)

    @property
    def good(self) -> bool:
        """Enough are killed, and the list is true."""
        return bool(self.tried) and self.share >= self.floor and not self.gone and not self.noticed

    def interval(self) -> tuple[float, float]:
        """Where the share of all mutants lies with 95 % (Wilson 1927)."""
        count, share, square = max(1, len(self.tried)), self.share, DEVIATIONS**2
        middle = (share + square / (2 * count)) / (1 + square / count)
        spread = math.sqrt(share * (1 - share) / count + square / (4 * count**2))
        half = DEVIATIONS * spread / (1 + square / count)
        return middle - half, middle + half

    def table(self) -> Table:
        """By module."""
        table = Table("module", *(f"{name}" for name in _COLUMNS), "share", title="Mutants")
        for column in table.columns[1:]:
            column.justify = "right"
        for module in sorted({item.mutant.module for item in self.verdicts}):
            table.add_row(
                module, *self._row([item for item in self.verdicts if item.mutant.module == module])
            )
        table.add_section()
        table.add_row("all", *self._row(self.verdicts), style="bold")
        return table

    def _row(self, verdicts: Sequence[Verdict]) -> list[str]:
        counts = Counter(_column(item, self.reasons) for item in verdicts)
        tried = len(verdicts) - counts["stillborn"]
        share = (counts["killed"] + counts["timed out"]) / max(1, tried)
        return [*(str(counts[name] or "") for name in _COLUMNS), f"{share:.1%}"]

    def summary(self) -> list[str]:
        """In words."""
        lines = [
            f"{self.killed} of {len(self.tried)} mutants killed: {self.share:.1%}, floor {self.floor:.0%}"
        ]
        if not self.whole:
            low, high = self.interval()
            lines.append(f"of all mutants, with 95 %: {low:.1%} to {high:.1%}")
        lines += [f"listed, but no mutant any more: {name}" for name in self.gone]
        lines += [f"listed, but killed now: {name}" for name in self.noticed]
        return lines

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        low, high = (self.share, self.share) if self.whole else self.interval()
        return {
            "tried": len(self.tried),
            "killed": self.killed,
            "share": self.share,
            "interval": [low, high],
            "good": self.good,
            "gone": list(self.gone),
            "noticed": self.noticed,
            "verdicts": [
                {
                    "mutant": item.mutant.name,
                    "fate": item.fate,
                    "test": item.test,
                    "reason": self.reasons.get(item.mutant.name),
                }
                for item in self.verdicts
            ],
        }


_COLUMNS = ("killed", "timed out", "listed", "survived", "not reached", "stillborn")


def _column(verdict: Verdict, reasons: Reasons) -> str:
    listed = verdict.fate in {"survived", "not reached"} and verdict.mutant.name in reasons
    return "listed" if listed else verdict.fate
