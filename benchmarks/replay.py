"""`replay`: `pml replay` over a log, beside a pass over the same records that only decodes them.

The whole path of the command without its comparisons: read the log to its end, decode, fold the sessions
and the accounts. Nothing is compared, so the store is not part of it.
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
from benchmarks.projection import outgoing, write
from benchmarks.stack import bench_settings, broker
from pml.processors.speculation.metrics import Totals, encode_totals
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.connection import client_options
from pml.streams.log.reader import counted_event
from pml.streams.log.tail import Tails
from pml.streams.replay.accounts import AccountsReplay
from pml.streams.replay.play import replay
from pml.streams.replay.sessions import SessionsReplay
from pml.streams.replay.sources import read_log
from pml.streams.settings import Settings

# Deciding them takes longer than all rounds together.
EVENTS = 20_000
BOUND = Bound("at most", 2.0)

Pass = Callable[[], Awaitable[None]]


async def measure(plan: Plan) -> Sequence[Figure]:
    """Both kinds of decoding and the replay in every round."""
    plan.say(f"deciding {EVENTS:,} events")
    log = await asyncio.to_thread(history, EVENTS, plan.seed)
    ends = {number: len(events) for number, events in log.items() if events}
    times: dict[str, list[float]] = {"loads": [], "events": [], "replay": []}
    async with broker(bench_settings(plan.folder)) as settings:
        await write(settings, {number: [outgoing(event) for event in log[number]] for number in ends})
        log.clear()
        sides: dict[str, Pass] = {
            "loads": partial(_read, settings, ends, lambda record: orjson.loads(record.value)),
            "events": partial(_read, settings, ends, counted_event),
            "replay": partial(_replay, settings, ends),
        }
        await sides["replay"]()  # the broker's files and our code are warm after that
        for number in range(plan.rounds):
            plan.say(f"round {number + 1} of {plan.rounds}")
            await in_turns(number, *(partial(_timed, times[name], side) for name, side in sides.items()))
    return figures(times["replay"], times["loads"], times["events"])


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


async def _replay(settings: Settings, ends: Mapping[int, int]) -> None:
    # Live values at the end of the log: without them no account would be folded.
    live = {number: encode_totals(Totals(), end - 1) for number, end in ends.items()}
    report = await replay(
        read_log(settings), sessions=SessionsReplay({}), accounts=AccountsReplay(live), rows=None
    )
    if report.events != sum(ends.values()):
        raise AssertionError(f"the replay read {report.events} of {sum(ends.values())} events")


async def _timed(values: list[float], side: Pass) -> None:
    gc.collect()
    began = time.perf_counter()
    await side()
    values.append(time.perf_counter() - began)


def figures(replayed: Sequence[float], loads: Sequence[float], events: Sequence[float]) -> list[Figure]:
    """The replay beside both kinds of decoding; all in seconds, one value a round."""
    return [
        Figure(
            "replay",
            "s",
            tuple(replayed),
            tuple(loads),
            BOUND,
            f"{EVENTS:,} events (a million would take the generator too long): "
            "read, decode and fold sessions and accounts ÷ read and orjson.loads",
        ),
        Figure(
            "… beside typed events",
            "s",
            tuple(replayed),
            tuple(events),
            note="the same ÷ read and decode to validated events, which no fold can do without",
        ),
    ]
