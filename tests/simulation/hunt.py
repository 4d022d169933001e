"""Hunting mutants: seeds are played with one rule broken until a check fails.

A hunt plays a mutant's seeds in their order, and says how many it took. A look begins at the seed that a hunt
kept (`found.json`): as sure to find it, since all the others follow, and mostly at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from tests.simulation.mutant import Mutant, Patch, broken
from tests.simulation.mutants import MUTANTS
from tests.simulation.play import play
from tests.simulation.plays import PLOTS

FIRST_SEED = 1_000
FOUND = Path(__file__).with_name("found.json")
Which = Literal["none", "look", "all"]


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


def hunt(mutant: Mutant, first: int = 1) -> Catch:
    """Play the mutant's plots in turn until it is found: the seed number `first`, then from 1 on."""
    plots = [plot for plot in PLOTS if plot.name in mutant.plots]
    with broken(mutant):
        for number in sorted(range(mutant.within), key=lambda number: number + 1 != first):
            result = play(FIRST_SEED + number, plot=plots[number % len(plots)])
            if result.violation is not None:
                return Catch(mutant, number + 1, result.violation.check)
    return Catch(mutant, None)


def hunt_all(which: Which, jobs: int) -> list[Catch]:
    """All mutants in the order of the rules: hunted, or only looked at."""
    wanted = range(0 if which == "none" else len(MUTANTS))
    search = partial(_hunt_one, kept() if which == "look" else {})
    if jobs == 1 or not wanted:
        return [search(index) for index in wanted]
    with ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(search, wanted))


def kept() -> dict[str, int]:
    """The number of the seed that found a mutant, by its name, as the last hunt kept it."""
    found: dict[str, int] = json.loads(FOUND.read_text())
    return found


def keep(found: list[Catch]) -> None:
    """Let looks begin at what these hunts found."""
    seeds = {item.mutant.name: item.seeds for item in found if item.seeds is not None}
    FOUND.write_text(json.dumps(seeds, indent=2) + "\n")


def _hunt_one(first: Mapping[str, int], index: int) -> Catch:
    catch = hunt(MUTANTS[index], first.get(MUTANTS[index].name, 1))
    return replace(catch, mutant=replace(catch.mutant, patches=_nothing))


def _nothing() -> list[Patch]:
    """What it breaks stays in the process that hunted it."""
    return []
