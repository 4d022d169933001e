"""Hunting mutants: seeds are played with one rule broken until a check fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.simulation.mutants import MUTANTS, Mutant, broken
from tests.simulation.play import play
from tests.simulation.plays import PLOTS

FIRST_SEED = 1_000


@dataclass(frozen=True)
class Catch:
    """What became of a mutant: after how many seeds it was found, and by which check."""

    mutant: Mutant
    seeds: int | None
    check: str = ""

    @property
    def in_time(self) -> bool:
        """Whether it was found within its number of seeds."""
        return self.seeds is not None

    @property
    def line(self) -> str:
        """For people."""
        told = f"found by seed {self.seeds} of {self.mutant.within}: {self.check}"
        return f"mutant  {self.mutant.rule:24} {self.mutant.name}: {told if self.in_time else 'NOT FOUND'}"

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        named = {"name": self.mutant.name, "rule": self.mutant.rule, "within": self.mutant.within}
        return {**named, "seeds": self.seeds, "check": self.check}


def hunt(mutant: Mutant) -> Catch:
    """Play the mutant's plots in turn until it is found."""
    plots = [plot for plot in PLOTS if plot.name in mutant.plots]
    with broken(mutant):
        for number in range(mutant.within):
            result = play(FIRST_SEED + number, plot=plots[number % len(plots)])
            if result.violation is not None:
                return Catch(mutant, number + 1, result.violation.check)
    return Catch(mutant, None)


def hunt_all() -> list[Catch]:
    """Every mutant, in the order of the rules."""
    return [hunt(mutant) for mutant in MUTANTS]
