"""`sink`: the worker `sink` on a log that is already there, beside one bulk insert of the same rows.

Both fill the tables of a database of their own, materialised views included. The worker reads, checks and
plans batches as it always does, and is timed from the first rows that the store shows until no whole batches
are left (what is less than a batch waits for company on purpose). The insert is one call of the driver with
rows that were made before.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

from benchmarks.figures import Bound, Figure, rate_between
from benchmarks.history import history
from benchmarks.plan import Plan, in_turns
from benchmarks.projection import outgoing, write
from benchmarks.stack import bench_settings, broker, store, with_prefix
from pml.clickhouse.client import Store
from pml.clickhouse.migrate import migrate
from pml.clickhouse.rows import EVENT_COLUMNS, EVENTS_TABLE, event_row
from pml.schemas.codec import open_envelope
from pml.streams.connection import store_url
from pml.streams.local.polling import until
from pml.streams.local.services import Worker
from pml.streams.log.append import Outgoing
from pml.streams.settings import Settings

EVENTS = 60_000
RATE_BOUND = Bound("at least", 0.5)
ROLE = "sink"
# Twelve partitions have a whole batch each, and a rest.
WHOLE_BATCHES = 0.75
# A look costs the store two milliseconds.
LOOK_S = 0.05
# 60,000 rows take seconds; a busy machine may need a minute for the start alone.
SINK_TIMEOUT_S = 120
ON_DISK = "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = {database:String}"


@dataclass(slots=True)
class Measured:
    """One value a round."""

    sink_per_s: list[float] = field(default_factory=list)
    bulk_per_s: list[float] = field(default_factory=list)
    events_bytes: list[float] = field(default_factory=list)
    all_bytes: list[float] = field(default_factory=list)


async def measure(plan: Plan) -> Sequence[Figure]:
    """The worker and the bulk insert in every round."""
    plan.say(f"deciding {EVENTS:,} events")
    # The tables drop what is older than 400 days.
    log = await asyncio.to_thread(history, EVENTS, plan.seed, time.time_ns() // 1_000_000)
    records = {number: [outgoing(event) for event in events] for number, events in log.items()}
    measured = Measured()
    async with broker(bench_settings(plan.folder)) as reached, store(reached) as settings:
        for number in range(plan.rounds):
            plan.say(f"round {number + 1} of {plan.rounds}")
            await in_turns(
                number,
                partial(_sink, _own(settings, f"sink_{number}"), records, measured),
                partial(_bulk, _own(settings, f"bulk_{number}"), records, measured),
            )
    json_bytes = float(sum(len(record.value or b"") for lines in records.values() for record in lines))
    return _figures(measured, json_bytes)


def _own(settings: Settings, database: str) -> Settings:
    """The same broker and store, topics and a database of its own."""
    clickhouse = settings.clickhouse.model_copy(update={"database": database})
    return with_prefix(settings.model_copy(update={"clickhouse": clickhouse}))


def _opened(settings: Settings) -> Store:
    """A database with PML's tables."""
    opened = Store.connect(store_url(settings), settings.clickhouse.database)
    migrate(opened)
    return opened


async def _sink(settings: Settings, records: Mapping[int, Sequence[Outgoing]], measured: Measured) -> None:
    await write(settings, records)
    total = sum(map(len, records.values()))
    worker, steps = Worker(settings, (ROLE,)), list[tuple[int, int]]()
    with await asyncio.to_thread(_opened, settings) as found:

        async def whole() -> bool:
            rows = await asyncio.to_thread(_count, found)
            if rows:
                steps.append((round(time.monotonic() * 1_000), rows))
            return rows >= total

        await worker.start()
        try:
            async with asyncio.timeout(SINK_TIMEOUT_S):
                await until(whole, LOOK_S)
        finally:
            await worker.stop()
    backlog = [step for step in steps if step[1] <= max(steps[0][1], WHOLE_BATCHES * total)]
    measured.sink_per_s.append(rate_between([*backlog, steps[len(backlog)]]))


async def _bulk(settings: Settings, records: Mapping[int, Sequence[Outgoing]], measured: Measured) -> None:
    rows = [
        event_row(partition, open_envelope(line.value).fields)
        for partition, lines in records.items()
        for line in lines
    ]
    with ExitStack() as stack:
        found = stack.enter_context(await asyncio.to_thread(_opened, settings))
        found.insert(EVENTS_TABLE, EVENT_COLUMNS, rows[:1])  # the driver asks for the types of columns once
        began = time.perf_counter()
        await asyncio.to_thread(found.insert, EVENTS_TABLE, EVENT_COLUMNS, rows)
        measured.bulk_per_s.append(len(rows) / (time.perf_counter() - began))
        await asyncio.to_thread(_merge, found)
        measured.events_bytes.append(_bytes(found, settings, f" AND table = '{EVENTS_TABLE}'"))
        measured.all_bytes.append(_bytes(found, settings))


def _count(found: Store) -> int:
    return int(found.query(f"SELECT count() FROM {EVENTS_TABLE}").rows[0][0])


def _merge(found: Store) -> None:
    """To one part a table: what the background does sooner or later."""
    tables = found.query(
        "SELECT name FROM system.tables WHERE database = currentDatabase() AND name LIKE '%_raw'"
    )
    for (name,) in tables.rows:
        found.command(f"OPTIMIZE TABLE {name} FINAL")


def _bytes(found: Store, settings: Settings, condition: str = "") -> float:
    answer = found.query(ON_DISK + condition, {"database": settings.clickhouse.database})
    return float(answer.rows[0][0])


def _figures(measured: Measured, json_bytes: float) -> list[Figure]:
    same = (json_bytes,) * len(measured.all_bytes)
    return [
        Figure(
            "rows",
            "rows/s",
            tuple(measured.sink_per_s),
            tuple(measured.bulk_per_s),
            RATE_BOUND,
            f"{EVENTS:,} events, read, checked and inserted in batches ÷ one insert of all of them",
        ),
        Figure(
            "events on disk",
            "bytes",
            tuple(measured.events_bytes),
            same,
            note="events_raw, merged ÷ the same events as JSON in the log",
        ),
        Figure(
            "all tables on disk",
            "bytes",
            tuple(measured.all_bytes),
            same,
            note="with tasks_raw, speculations_raw, runs_raw and the rest ÷ the same JSON",
        ),
    ]
