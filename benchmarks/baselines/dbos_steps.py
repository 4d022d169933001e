"""Durable steps that do nothing, in DBOS on SQLite: one after another, and many workflows at once.

    python -m benchmarks.baselines.dbos_steps DATABASE --chain 100 --runs 20 --steps 20

Each way of writing them is measured, plain functions and coroutines; the better one counts. Prints one JSON
object: `step_ms`, `processor_ms` (processor time a step of the chain) and `steps_per_s` by way.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time

from dbos import DBOS, DBOSConfig

WARM_UP_STEPS = 10


def nothing(number: int) -> int:
    """What a step does."""
    return number


async def nothing_async(number: int) -> int:
    """What a step does."""
    return number


def steps_in_turn(steps: int) -> int:
    """So many steps, one after another."""
    return sum(step(number) for number in range(steps))


async def steps_in_turn_async(steps: int) -> int:
    """So many steps, one after another."""
    total = 0
    for number in range(steps):
        total += await step_async(number)
    return total


step = DBOS.step()(nothing)
step_async = DBOS.step()(nothing_async)
chain = DBOS.workflow()(steps_in_turn)
chain_async = DBOS.workflow()(steps_in_turn_async)


class Clock:
    """Milliseconds a step of what runs between its making and `per_step`: elapsed and of the processor."""

    def __init__(self) -> None:
        self._began = time.perf_counter(), time.process_time()

    def per_step(self, steps: int) -> tuple[float, float]:
        """Both, for so many steps."""
        elapsed_s, processor_s = time.perf_counter() - self._began[0], time.process_time() - self._began[1]
        return elapsed_s * 1_000 / steps, processor_s * 1_000 / steps


def chain_ms(steps: int) -> tuple[float, float]:
    """Milliseconds a step of one workflow, elapsed and of the processor."""
    clock = Clock()
    DBOS.start_workflow(chain, steps).get_result()
    return clock.per_step(steps)


def steps_per_s(runs: int, steps: int) -> float:
    """Steps a second of so many workflows at once."""
    began = time.perf_counter()
    handles = [DBOS.start_workflow(chain, steps) for _ in range(runs)]
    for handle in handles:
        handle.get_result()
    return runs * steps / (time.perf_counter() - began)


async def chain_ms_async(steps: int) -> tuple[float, float]:
    """Milliseconds a step of one workflow, elapsed and of the processor."""
    clock = Clock()
    await (await DBOS.start_workflow_async(chain_async, steps)).get_result()
    return clock.per_step(steps)


async def steps_per_s_async(runs: int, steps: int) -> float:
    """Steps a second of so many workflows at once."""
    began = time.perf_counter()
    handles = [await DBOS.start_workflow_async(chain_async, steps) for _ in range(runs)]
    await asyncio.gather(*(handle.get_result() for handle in handles))
    return runs * steps / (time.perf_counter() - began)


async def measure_async(chain_steps: int, runs: int, steps: int) -> tuple[float, float, float]:
    """All figures of the coroutines, in one event loop."""
    await chain_ms_async(WARM_UP_STEPS)
    return *await chain_ms_async(chain_steps), await steps_per_s_async(runs, steps)


def main() -> None:
    """Measure both ways and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database")
    for name in ("--chain", "--runs", "--steps"):
        parser.add_argument(name, type=int, required=True)
    given = parser.parse_args()
    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": f"sqlite:///{given.database}",
        "log_level": "WARNING",
    }
    DBOS(config=config)
    DBOS.launch()
    try:
        chain_ms(WARM_UP_STEPS)
        plain = *chain_ms(given.chain), steps_per_s(given.runs, given.steps)
        coroutines = asyncio.run(measure_async(given.chain, given.runs, given.steps))
    finally:
        DBOS.destroy()
    ways = {"plain": plain, "async": coroutines}
    names = ("step_ms", "processor_ms", "steps_per_s")
    print(json.dumps({name: {way: ways[way][index] for way in ways} for index, name in enumerate(names)}))


if __name__ == "__main__":
    main()
