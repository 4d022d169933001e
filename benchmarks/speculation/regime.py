"""A regime: the same workflows with the same times on several sides, round after round."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.machine import own_cpu_s
from benchmarks.plan import Plan, in_turns
from benchmarks.speculation.conversion import SourceWorkflow
from benchmarks.speculation.player import Account
from benchmarks.speculation.sample import Drawn, draw

Play = Callable[[Drawn, Account], Awaitable[float]]


@dataclass(frozen=True, slots=True)
class Side:
    """One way to run a workflow: for real, in seconds, and in the model that knows no overhead."""

    name: str
    play: Play
    ideal_s: Callable[[Drawn], float]


@dataclass(frozen=True, slots=True)
class Regime:
    """What is played. `lanes` workflows run side by side on a side; the first ones begin within `spread_s`.

    Sides take turns, or, where `together`, run at the same time: every one sees the same machine then, and
    a regime whose runs mostly wait is over sooner.
    """

    name: str
    sources: Sequence[SourceWorkflow]
    median_s: float
    lanes: int
    sides: Sequence[Side]
    together: bool = False
    spread_s: float = 0.2


@dataclass(slots=True)
class Played:
    """Seconds of every workflow by round, measured and ideal; the accounts of each data set."""

    seconds: list[list[float]] = field(default_factory=list)
    ideal: list[list[float]] = field(default_factory=list)
    accounts: dict[str, Account] = field(default_factory=dict)


@dataclass(slots=True)
class Outcome:
    """What a regime came to: by side, and the greatest share of all cores that we took in a round."""

    regime: Regime
    played: dict[str, Played]
    cpu_share: float = 0.0


async def run(regime: Regime, plan: Plan) -> Outcome:
    """All rounds, one after another."""
    outcome = Outcome(regime, {side.name: Played() for side in regime.sides})
    for number in range(plan.rounds):
        plan.say(f"{regime.name}: round {number + 1} of {plan.rounds}")
        drawn = [draw(source, regime.median_s, plan.seed_of(number)) for source in regime.sources]
        cpu_s, began = own_cpu_s(), time.perf_counter()
        turns = [_turn(regime, side, drawn, outcome.played[side.name]) for side in regime.sides]
        if regime.together:
            await asyncio.gather(*(turn() for turn in turns))
        else:
            await in_turns(number, *turns)
        share = (own_cpu_s() - cpu_s) / (time.perf_counter() - began) / (os.cpu_count() or 1)
        outcome.cpu_share = max(outcome.cpu_share, share)
    return outcome


def _turn(
    regime: Regime, side: Side, drawn: Sequence[Drawn], played: Played
) -> Callable[[], Awaitable[None]]:
    async def turn() -> None:
        played.seconds.append(await side_by_side(side, drawn, regime.lanes, played.accounts, regime.spread_s))
        played.ideal.append([side.ideal_s(each) for each in drawn])

    return turn


async def side_by_side(
    side: Side, drawn: Sequence[Drawn], lanes: int, accounts: dict[str, Account], spread_s: float = 0.0
) -> list[float]:
    """Play all, so many at a time, in this order; lanes begin one after another, not in step."""
    waiting = iter(range(len(drawn)))
    seconds = [0.0] * len(drawn)

    async def lane(number: int) -> None:
        await asyncio.sleep(number * spread_s / lanes)
        for index in waiting:
            account = accounts.setdefault(drawn[index].source.dataset, Account())
            seconds[index] = await side.play(drawn[index], account)

    async with asyncio.TaskGroup() as running:
        for number in range(min(lanes, len(drawn))):
            running.create_task(lane(number))
    return seconds
