"""`prediction`: a call through the proxy where it is then asked what comes next, beside one where it is not.

Two stacks on one broker and one store, which differ in `speculation.predictions` only. Each call has another
number, which nobody can know before: what is asked brings nothing, and costs what it costs. An agent pauses
between its calls; without a pause, and with several calls open, questions and calls compete.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial

from benchmarks.figures import Figure, percentile
from benchmarks.plan import Plan, in_turns
from benchmarks.proxy import PERCENTILES, PROXIED, CallFailed, Side, through_pml
from benchmarks.stack import bench_settings, beside
from pml.streams.client import EventConsumer
from pml.streams.local.supervisor import supervised
from pml.streams.settings import Settings

CALLS = 60
WARM_UP_CALLS = 20
PAUSE_S = 0.2
# Calls that are open at a time, and the pause after each.
PACES = {"one at a time, a pause after each": (1, PAUSE_S), "one at a time": (1, 0.0), "8 at once": (8, 0.0)}
# Until the runs of the warm-up are in the store and counted.
ANSWERED_S = 120.0
# Milliseconds of each call of each round: where it is asked, and where it is not.
Took = tuple[list[list[float]], list[list[float]]]


async def measure(plan: Plan) -> Sequence[Figure]:
    """Both stacks in every round, at every pace."""
    settings = bench_settings(plan.folder, speculation={"predictions": "on"})
    async with supervised(settings, plan.say):
        silent = _silent(beside(settings, plan.folder / "silent", "pml_silent"))
        async with (
            supervised(silent, plan.say),
            through_pml(settings) as asking_client,
            through_pml(silent) as silent_client,
        ):
            sides = Side(asking_client, PROXIED), Side(silent_client, PROXIED)
            await _warm_up(plan, settings, sides)
            found: dict[str, Took] = {pace: ([], []) for pace in PACES}
            for number in range(plan.rounds):
                for pace, (at_once, pause_s) in PACES.items():
                    plan.say(f"round {number + 1} of {plan.rounds}: {pace}")
                    turns = (
                        partial(paced_round, side, at_once, pause_s, into)
                        for side, into in zip(sides, found[pace], strict=True)
                    )
                    await in_turns(number, *turns)
    return [figure(pace, percent, *found[pace]) for pace in PACES for percent in PERCENTILES]


def _silent(settings: Settings) -> Settings:
    policy = settings.speculation.model_copy(update={"predictions": "off"})
    return settings.model_copy(update={"speculation": policy})


async def _warm_up(plan: Plan, settings: Settings, sides: Sequence[Side]) -> None:
    """Until questions are answered: before, they are cheaper than they will be."""
    plan.say("warming up")
    async with EventConsumer(settings, start="end", types=["prediction.made"]) as made:
        answered = asyncio.ensure_future(anext(aiter(made)))
        async with asyncio.timeout(ANSWERED_S):
            while not answered.done():
                for side in sides:
                    await side.measure(1, WARM_UP_CALLS)
        await answered


async def paced_round(
    side: Side, at_once: int, pause_s: float, into: list[list[float]], calls: int = CALLS
) -> None:
    """The milliseconds of each call of a round, appended to `into` as one list."""
    left = iter(range(calls))
    took_ms: list[float] = []

    async def one_after_another() -> None:
        for _ in left:
            took_ms.append(await _call(side))
            await asyncio.sleep(pause_s)

    await asyncio.gather(*(one_after_another() for _ in range(at_once)))
    into.append(took_ms)


async def _call(side: Side) -> float:
    side.calls += 1
    began = time.perf_counter()
    answer = await side.client.call_tool(side.tool, {"number": side.calls})
    took_ms = (time.perf_counter() - began) * 1_000
    if answer.is_error:
        raise CallFailed(f"{side.tool} answered {answer.content!r:.300}")
    return took_ms


def figure(pace: str, percent: int, asking: list[list[float]], silent: list[list[float]]) -> Figure:
    values, baseline = (tuple(percentile(took, percent) for took in side) for side in (asking, silent))
    return Figure(f"{pace}, p{percent}", "ms", values, baseline)
