"""`retraining`: a call through the proxy while `pml train` runs as `--watch` runs it, beside one without it.

One stack, whose server does nothing, so that whatever a training takes from the pipeline is seen. What is
trained on are the recorded data sets: that goes on for as long as a round does. Where both sides are equal a
training on two cores costs the pipeline nothing.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from benchmarks.datasets import VARIABLE, datasets_place
from benchmarks.figures import Figure
from benchmarks.plan import Plan, in_turns
from benchmarks.prediction import PACES, WARM_UP_CALLS, Took, paced_round
from benchmarks.prediction import figure as figure_of
from benchmarks.proxy import PERCENTILES, PROXIED, Side, through_pml
from benchmarks.stack import bench_settings
from pml.schemas.errors import PMLError
from pml.streams.learning.limited import MIB, Limits, run_limited
from pml.streams.local.supervisor import supervised
from pml.streams.settings import Settings

LIMITS = Limits(memory_bytes=4_096 * MIB, time_s=3_600)
# Past its imports, which are no training.
BEGUN_S = 8.0
# Calls of a round at each pace, for some ten seconds: a training looks at the last one before it gives way.
CALLS = {"one at a time, a pause after each": 60, "one at a time": 400, "8 at once": 900}


class NothingToTrainOn(PMLError):
    """There are no recorded data sets, or the training ended before anything was measured."""

    code = "NOTHING_TO_TRAIN_ON"


async def measure(plan: Plan) -> Sequence[Figure]:
    """Both sides in every round, at every pace."""
    sets = datasets_place()
    if sets is None:
        raise NothingToTrainOn(f"there are no data sets to train on: name their folder in {VARIABLE}")
    settings = bench_settings(plan.folder)
    found: dict[str, Took] = {pace: ([], []) for pace in PACES}
    async with supervised(settings, plan.say), through_pml(settings) as client:
        side = Side(client, PROXIED)
        plan.say("warming up")
        await side.measure(8, WARM_UP_CALLS)
        for number in range(plan.rounds):
            for pace, (at_once, pause_s) in PACES.items():
                plan.say(f"round {number + 1} of {plan.rounds}: {pace}")
                with_it, without = found[pace]
                alone = partial(paced_round, side, at_once, pause_s, calls=CALLS[pace])
                await in_turns(
                    number,
                    partial(_beside_training, settings, sets, partial(alone, into=with_it)),
                    partial(alone, into=without),
                )
    return [figure_of(pace, percent, *found[pace]) for pace in PACES for percent in PERCENTILES]


async def _beside_training(settings: Settings, sets: Path, measured: Callable[[], Awaitable[None]]) -> None:
    """A training runs during the whole round, and not longer.

    Raises:
        NothingToTrainOn: it ended before the round did.
    """
    command = [sys.executable, "-m", "pml.streams.cli", "train", "--data", str(sets), "--json"]
    running = asyncio.create_task(run_limited(command, {**os.environ, **settings.environment()}, LIMITS))
    try:
        await asyncio.sleep(BEGUN_S)
        await measured()
        if running.done():
            raise NothingToTrainOn(f"the training ended before anything was measured: {running.exception()}")
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError, PMLError):
            await running
