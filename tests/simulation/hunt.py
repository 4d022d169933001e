"""Hunting mutants: seeds are played with one rule broken until a check fails."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Literal

from tests.simulation.mutant import Mutant, Patch, broken
from tests.simulation.mutants import MUTANTS
from tests.simulation.play import play
from tests.simulation.plays import PLOTS

FIRST_SEED = 1_000
QUICK = 60
Which = Literal["none", "quick", "all"]


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


def hunt_all(which: Which, jobs: int) -> list[Catch]:
    """Mutants in the order of the rules: all of them, or those that are found within a few seeds."""
    wanted = [index for index, mutant in enumerate(MUTANTS) if _wanted(mutant, which)]
    if jobs == 1 or not wanted:
        return [hunt(MUTANTS[index]) for index in wanted]
    with ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(_hunt_one, wanted))


def _hunt_one(index: int) -> Catch:
    catch = hunt(MUTANTS[index])
    return replace(catch, mutant=replace(catch.mutant, patches=_nothing))


def _nothing() -> list[Patch]:
    """What it breaks stays in the process that hunted it."""
    return []


def _wanted(mutant: Mutant, which: Which) -> bool:
    return which == "all" or (which == "quick" and mutant.within <= QUICK)
