"""`replay`: `pml replay` over a million events, beside passes over the same records that only decode them.

The whole path of the command without its comparisons: read the log to its end, decode, fold the sessions
and the accounts, in as many processes as the command takes. Nothing is compared, so the store is not part of
it. Both passes that decode are one process.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

import orjson

from benchmarks.figures import Bound, Figure
from benchmarks.history import history
from benchmarks.plan import Plan, in_turns
from benchmarks.projection import write
from benchmarks.repeated import repeated
from benchmarks.stack import bench_settings, broker
from pml.processors.speculation.metrics import Totals, encode_totals
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.connection import client_options
from pml.streams.log.reader import counted_event
from pml.streams.log.tail import Tails
from pml.streams.replay.parts import Live, Part
from pml.streams.replay.play import ReplayReport, merged
from pml.streams.replay.selection import KAFKA, Selection
from pml.streams.replay.workers import Hearers, processors, replay_parts
from pml.streams.settings import Settings

EVENTS = 1_000_000
# Deciding a million takes longer than all rounds together: these are decided, and written under other names.
DECIDED = 20_000
# A round takes minutes.
ROUNDS_MAX = 3
BOUND = Bound("at most", 2.0)

Pass = Callable[[], Awaitable[None]]
Times = Mapping[str, Sequence[float]]


async def measure(plan: Plan) -> Sequence[Figure]:
    """Both kinds of decoding, and the replay in one process and in all, in every round."""
    async with broker(bench_settings(plan.folder)) as settings:
        ends = await _written(settings, plan)
        sides: dict[str, Pass] = {
            "loads": partial(_read, settings, ends, lambda record: orjson.loads(record.value)),
            "events": partial(_read, settings, ends, counted_event),
            "one": partial(_replay, settings, ends, 1),
            "replay": partial(_replay, settings, ends, processors()),
        }
        times: dict[str, list[float]] = {name: [] for name in sides}
        await sides["loads"]()  # the broker's files and our code are warm after that
        for number in range(min(plan.rounds, ROUNDS_MAX)):
            plan.say(f"round {number + 1} of {min(plan.rounds, ROUNDS_MAX)}")
            await in_turns(number, *(partial(_timed, times[name], side) for name, side in sides.items()))
    return figures(times, sum(ends.values()))


async def _written(settings: Settings, plan: Plan) -> dict[int, int]:
    """Write the log; the end of each partition."""
    plan.say(f"deciding {DECIDED:,} events")
    log = await asyncio.to_thread(history, DECIDED, plan.seed)
    times = -(-EVENTS // sum(map(len, log.values())))
    plan.say(f"writing them {times} times")
    for number, events in log.items():
        await write(settings, {number: list(repeated(events, times))})
    return {number: len(events) * times for number, events in log.items() if events}


async def _read(settings: Settings, ends: Mapping[int, int], decode: Callable[..., object]) -> None:
    """Every record of the log, read as a replay reads it, and decoded."""
    tail = Tails(client_options(settings))
    await tail.start()
    try:
        for number in range(SESSION_PARTITIONS):
            async for records in tail.read(settings.topics.events, number, 0, ends.get(number, 0)):
                for record in records:
                    decode(record)
    finally:
        await tail.stop()


async def _replay(settings: Settings, ends: Mapping[int, int], workers: int) -> None:
    # Live values at the end of the log: without them no account would be folded.
    parts = [
        Part(number, range(end), end, Live(metrics={number: encode_totals(Totals(), end - 1)}))
        for number, end in ends.items()
    ]
    reports: list[ReplayReport] = []
    hearers = Hearers(lambda _, report: reports.append(report), lambda _: None)
    await replay_parts(settings, Selection(KAFKA), parts, workers, hearers)
    found, events = merged(reports), sum(ends.values())
    folded = {each.projection: (each.folded, each.differences) for each in found.comparisons}
    if folded["sessions"] != (events, 0):
        raise AssertionError(f"the replay folded {folded['sessions']} of {events} events")


async def _timed(values: list[float], side: Pass) -> None:
    gc.collect()
    began = time.perf_counter()
    await side()
    values.append(time.perf_counter() - began)


def figures(times: Times, events: int) -> list[Figure]:
    """The replay beside both kinds of decoding; all in seconds, one value a round."""
    replayed, one = tuple(times["replay"]), tuple(times["one"])
    loads, typed = tuple(times["loads"]), tuple(times["events"])
    size = f"{events:,} events ({DECIDED:,} decided, the same again under other names)"
    return [
        Figure(
            "replay",
            "s",
            replayed,
            loads,
            BOUND,
            f"{size}: read, decode and fold in {processors()} processes ÷ read and orjson.loads in one",
        ),
        Figure(
            "… beside typed events",
            "s",
            replayed,
            typed,
            BOUND,
            "the same ÷ read and decode to validated events in one process, as every consumer does",
        ),
        Figure("… in one process", "s", one, typed, note="one process ÷ read and decode to validated events"),
    ]
