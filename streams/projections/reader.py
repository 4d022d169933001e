"""`pml metrics`: reads the compacted changelog of the metrics table to its end and adds the partitions up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition

from pml.processors.speculation.metrics import Totals, decode_totals, summarise, total
from pml.schemas.errors import WaitedTooLong
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.connection import client_options
from pml.streams.projections.table import changelog_topic, partition_of
from pml.streams.reachability import broker_errors
from pml.streams.settings import Settings
from pml.streams.sources import opened, require_topic

# Only bounds how soon a deadline is noticed.
POLL_MS = 100
# Between two looks for a changelog that the role has not made yet.
ABSENT_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class MetricsReport:
    """The accounts of all partitions, and how far behind the log they are.

    `lag` counts the records of the log, as it was when it was asked, that are not in them yet.
    """

    totals: Totals = field(default_factory=Totals)
    lag: int = 0

    def as_dict(self) -> dict[str, Any]:
        """What `pml metrics --json` prints: in all, by tool, runs by status."""
        tools = self.totals.tools
        return {
            **summarise(tools.values()).as_dict(),
            "tools": {name: summarise([tools[name]]).as_dict() for name in sorted(tools)},
            "runs": {status: run.count for status, run in sorted(self.totals.runs.items())},
            "lag": self.lag,
        }


async def read_metrics(settings: Settings, wait_s: float | None = None) -> MetricsReport:
    """The metrics as they are; with `wait_s`, once they hold all that the log held when this was called.

    Raises:
        WaitedTooLong: the metrics were still behind after `wait_s`; is the role `metrics` running?
        BrokerUnavailable: no broker answers.
        TopicMismatch: the broker has no log of events.
        LogCorrupted: the table was written by a newer release.
    """
    topic = changelog_topic(settings)
    changelog = [TopicPartition(topic, number) for number in range(SESSION_PARTITIONS)]
    log = [TopicPartition(settings.topics.events, number) for number in range(SESSION_PARTITIONS)]
    deadline_s = time.monotonic() + (wait_s or 0.0)
    consumer = AIOKafkaConsumer(
        **client_options(settings), auto_offset_reset="earliest", enable_auto_commit=False
    )
    async with opened(consumer, settings), broker_errors(settings):
        await require_topic(consumer, settings.topics.events)
        ends = {pair.partition: end for pair, end in (await consumer.end_offsets(log)).items()}
        values: dict[int, bytes | None] = {}
        if await _exists(consumer, topic, deadline_s):
            consumer.assign(changelog)
            await _read_on(consumer, changelog, values)
        report = _report(values, ends)
        while report.lag and time.monotonic() < deadline_s:
            _keep(values, await consumer.getmany(timeout_ms=POLL_MS))
            report = _report(values, ends)
    if report.lag and wait_s is not None:
        raise WaitedTooLong(
            f"the metrics are {report.lag} records behind the log after {wait_s:g} s; `pml status` says "
            "whether the role metrics runs",
            lag=report.lag,
        )
    return report


async def _exists(consumer: Any, topic: str, deadline_s: float) -> bool:
    """Whether the role has made its changelog, at the latest at the deadline."""
    while topic not in await consumer.topics():
        if time.monotonic() >= deadline_s:
            return False
        await asyncio.sleep(ABSENT_POLL_S)
    return True


async def _read_on(consumer: Any, changelog: list[Any], values: dict[int, bytes | None]) -> None:
    ends = await consumer.end_offsets(changelog)
    for pair in changelog:
        while await consumer.position(pair) < ends[pair]:
            _keep(values, await consumer.getmany(timeout_ms=POLL_MS))


def _keep(values: dict[int, bytes | None], fetched: Mapping[Any, list[Any]]) -> None:
    for records in fetched.values():
        values.update((partition_of(record.key), record.value) for record in records)


def _report(values: Mapping[int, bytes | None], ends: Mapping[int, int]) -> MetricsReport:
    stored = {partition: decode_totals(value) for partition, value in values.items() if value}
    lag = sum(
        max(0, end - 1 - (stored[partition][1] if partition in stored else -1))
        for partition, end in ends.items()
    )
    return MetricsReport(total(totals for totals, _ in stored.values()), lag)
