"""`hop`: one round trip between orchestrator and bridge, beside a plain aiokafka echo of two hops.

The round trip begins when an outside consumer has the call and ends when it has the event that the task
completed: bridge, MCP server, outcome, orchestrator, event. That is two produce and two fetch requests, as
many as the echo's. Arrivals do not wait for answers (Poisson), and both sides draw with the same seed.
Beside it: from when the command was due until the call is seen (the orchestrator alone) and until the task is
completed (both).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from benchmarks.echo_client import EchoClient
from benchmarks.figures import Figure, arrivals_s, percentile
from benchmarks.plan import Plan, in_turns
from benchmarks.round_trips import RoundTrips, Trips
from benchmarks.stack import bench_settings
from pml.streams.local.supervisor import supervised

RATES_PER_S = (50, 200, 500)
DURATION_S = 8.0
WARM_UP_RUNS = 100
PERCENTILES = (50, 99)
WAYS = ("call → completed", "command → call", "command → completed")


@dataclass(slots=True)
class Side:
    """Percentiles by rate and percent, one value a round."""

    found: dict[tuple[int, int], list[float]] = field(default_factory=dict)

    def add(self, rate: int, samples_ms: Sequence[float]) -> None:
        """One round of a rate."""
        for percent in PERCENTILES:
            self.found.setdefault((rate, percent), []).append(percentile(samples_ms, percent))


@dataclass(slots=True)
class Sides:
    """What is compared: three ways by name, and the echo."""

    ways: dict[str, Side] = field(default_factory=lambda: {name: Side() for name in WAYS})
    echo: Side = field(default_factory=Side)
    events_per_run: float = 1.0


async def measure(plan: Plan) -> Sequence[Figure]:
    """All rates on both sides in every round."""
    settings = bench_settings(plan.folder)
    sides = Sides()
    async with supervised(settings, plan.say), RoundTrips(settings) as trips, EchoClient(settings) as echo:
        plan.say("warming up")
        sides.events_per_run = (await _warm_up(trips, echo)).events / WARM_UP_RUNS
        for number in range(plan.rounds):
            for rate in RATES_PER_S:
                plan.say(f"round {number + 1} of {plan.rounds}: {rate} events/s")
                seed = plan.seed_of(number)
                await in_turns(
                    number,
                    partial(_measure_echo, echo, rate, seed, sides),
                    partial(_measure_pml, trips, rate, seed, sides),
                )
    return [
        _figure(sides, rate, percent, way) for way in WAYS for rate in RATES_PER_S for percent in PERCENTILES
    ]


async def _warm_up(trips: RoundTrips, echo: EchoClient) -> Trips:
    due_s = [0.02 * number for number in range(WARM_UP_RUNS)]
    await echo.collect(due_s)
    return await trips.collect(due_s)


async def _measure_echo(echo: EchoClient, rate: int, seed: int, sides: Sides) -> None:
    sides.echo.add(rate, await echo.collect(arrivals_s(rate, DURATION_S, seed)))


async def _measure_pml(trips: RoundTrips, rate: int, seed: int, sides: Sides) -> None:
    found = await trips.collect(arrivals_s(rate / sides.events_per_run, DURATION_S, seed))
    for way, samples_ms in zip(
        WAYS,
        (found.call_to_completed_ms, found.command_to_call_ms, found.command_to_completed_ms),
        strict=True,
    ):
        sides.ways[way].add(rate, samples_ms)


def _figure(sides: Sides, rate: int, percent: int, way: str) -> Figure:
    return Figure(
        f"{way}, {rate}/s p{percent}",
        "ms",
        tuple(sides.ways[way].found[rate, percent]),
        tuple(sides.echo.found[rate, percent]),
        note=_note(sides) if (rate, percent, way) == (RATES_PER_S[0], PERCENTILES[0], WAYS[0]) else "",
    )


def _note(sides: Sides) -> str:
    return (
        f"rates are events of the log a second; a run of one call comes to {sides.events_per_run:g}, so "
        f"500/s are {500 / sides.events_per_run:.0f} round trips a second; the echo's are messages a second"
    )
