"""`state`: how many bytes the orchestrator keeps of a session, and writes to its changelog for each event.

Sessions run for real, side by side, and the changelog of the table is read meanwhile: its records are
compacted away a minute after they were written, and none may be missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from aiokafka import AIOKafkaConsumer, TopicPartition

from benchmarks.figures import Bound, Figure, percentile
from benchmarks.plan import Plan
from benchmarks.stack import bench_settings
from benchmarks.step import Runner, chain, runner
from pml.schemas.errors import PMLError
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.connection import client_options
from pml.streams.local.supervisor import supervised
from pml.streams.orchestrator.table import read_stored
from pml.streams.settings import Settings
from pml.streams.sources import opened

TASKS = 20
RUNS = 100
AT_ONCE = 20
# What a control record may have: 1 KB and 100 bytes a task (docs/reference/topics.md).
TARGET_BYTES = 1_024 + 100 * TASKS
WITHIN = Bound("at most", 1.0)
POLL_MS = 200
READ_S = 1.0
# States are written behind twice a second; a busy machine is later.
SETTLE_S = 3.0


class Compacted(PMLError):
    """Records of the changelog are gone: its bytes cannot be counted."""

    code = "COMPACTED"


@dataclass(slots=True)
class Written:
    """The bytes of a topic's records, and the sizes of the control records of live sessions."""

    records: int = 0
    bytes: int = 0
    controls: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Measured:
    """One value a round; control records without speculation and with it."""

    median: dict[str, list[float]] = field(default_factory=lambda: {"off": [], "on": []})
    largest: dict[str, list[float]] = field(default_factory=lambda: {"off": [], "on": []})
    changelog: list[float] = field(default_factory=list)
    log: list[float] = field(default_factory=list)


async def measure(plan: Plan) -> Sequence[Figure]:
    """A stack and its topics of its own in every round."""
    measured = Measured()
    for number in range(plan.rounds):
        plan.say(f"round {number + 1} of {plan.rounds}")
        settings = bench_settings(plan.folder / str(number))
        async with supervised(settings, plan.say), runner(settings) as runs:
            await _round(settings, runs, measured)
    return _figures(measured)


async def _round(settings: Settings, runs: Runner, measured: Measured) -> None:
    async with (
        Topic(settings, f"{settings.group('orchestrator')}-sessions-changelog") as changelog,
        Topic(settings, settings.topics.events) as log,
    ):
        table, events = Written(), Written()
        for mode in ("off", "on"):
            table.controls = []
            for _ in range(RUNS // AT_ONCE):
                await changelog.read_during(runs.run_all([chain(TASKS, speculation=mode)] * AT_ONCE), table)
            await asyncio.sleep(SETTLE_S)
            await changelog.read(table)
            measured.median[mode].append(percentile(table.controls, 50))
            measured.largest[mode].append(float(max(table.controls)))
        await log.read(events)
    measured.changelog.append(table.bytes / events.records)
    measured.log.append(events.bytes / events.records)


class Topic:
    """A topic that is read from its beginning, again and again to where it ends by then."""

    def __init__(self, settings: Settings, name: str) -> None:
        self._settings = settings
        self._pairs = [TopicPartition(name, number) for number in range(SESSION_PARTITIONS)]

    async def __aenter__(self) -> Self:
        consumer = AIOKafkaConsumer(
            **client_options(self._settings), enable_auto_commit=False, auto_offset_reset="earliest"
        )
        self._open = opened(consumer, self._settings)
        self._consumer = await self._open.__aenter__()
        self._consumer.assign(self._pairs)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._open.__aexit__(kind, error, trace)

    async def read_during(self, work: Coroutine[Any, Any, Any], found: Written) -> None:
        """Count what comes while something is being done, before it can be compacted away."""
        doing = asyncio.create_task(work)
        while not doing.done():
            await self.read(found)
            await asyncio.wait({doing}, timeout=READ_S)
        doing.result()

    async def read(self, found: Written) -> None:
        """Count what has come since.

        Raises:
            Compacted: some of it is gone already.
        """
        ends = await self._consumer.end_offsets(self._pairs)
        while any([await self._consumer.position(pair) < ends[pair] for pair in self._pairs]):
            for records in (await self._consumer.getmany(timeout_ms=POLL_MS)).values():
                _count(found, records)
        if found.records < sum(ends.values()):
            raise Compacted(f"{found.records} of {sum(ends.values())} records are left; measure again")


def _count(found: Written, records: Sequence[Any]) -> None:
    for record in records:
        found.records += 1
        found.bytes += len(record.key or b"") + len(record.value or b"")
        if record.value and b"/session/" in (record.key or b"")[:14] and read_stored(0, record.value).live:
            found.controls.append(len(record.value))


def _figures(measured: Measured) -> list[Figure]:
    target = (float(TARGET_BYTES),) * len(measured.log)
    without, early = measured.largest["off"], measured.largest["on"]
    return [
        Figure(
            "control record",
            "bytes",
            tuple(without),
            target,
            WITHIN,
            f"the largest of {RUNS} live sessions with a run of {TASKS} tasks ÷ 1 KB and 100 bytes a task",
        ),
        Figure("… median", "bytes", tuple(measured.median["off"]), target),
        Figure(
            "… with results in the cache",
            "bytes",
            tuple(early),
            target,
            note=f"the same while up to {TASKS - 1} speculated results wait for their TTL of five minutes",
        ),
        Figure("… with results, median", "bytes", tuple(measured.median["on"]), target),
        Figure(
            "changelog",
            "bytes an event",
            tuple(measured.changelog),
            tuple(measured.log),
            note="control records, definitions and markers, before they are compacted ÷ the event in the log",
        ),
    ]
