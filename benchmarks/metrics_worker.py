"""The worker `metrics` on a log that is already there: how many events a second it folds."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition

from benchmarks.figures import rate_between
from pml.processors.speculation.metrics import decode_totals
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.connection import client_options
from pml.streams.local.services import Worker
from pml.streams.projections.table import ROLE, changelog_topic, partition_of
from pml.streams.settings import Settings
from pml.streams.sources import opened

# 60,000 events take seconds; a busy machine may need a minute for the start alone.
FOLD_TIMEOUT_S = 300
POLL_MS = 100


@dataclass(slots=True)
class Progress:
    """How many events were in the table at which time, in the order of the broker's clock."""

    folded: dict[int, int] = field(default_factory=dict)
    steps: list[tuple[int, int]] = field(default_factory=list)

    @property
    def events(self) -> int:
        """The events that are in the table."""
        return sum(self.folded.values())

    def see(self, partition: int, offset: int, time_ms: int) -> None:
        """The table of a partition holds everything up to this offset since this time."""
        self.folded[partition] = offset + 1
        self.steps.append((time_ms, self.events))


async def worker_events_per_s(settings: Settings, events: int) -> float:
    """Start the worker, wait until its table holds so many events, stop it; events a second in between.

    Raises:
        StartFailed: the worker did not come up.
        TimeoutError: it did not get through within five minutes.
    """
    worker = Worker(settings, (ROLE,))
    await worker.start()
    try:
        async with asyncio.timeout(FOLD_TIMEOUT_S):
            return rate_between((await _progress(settings, events)).steps)
    finally:
        await worker.stop()


async def _progress(settings: Settings, events: int) -> Progress:
    topic, progress = changelog_topic(settings), Progress()
    consumer = AIOKafkaConsumer(
        **client_options(settings), enable_auto_commit=False, auto_offset_reset="earliest"
    )
    async with opened(consumer, settings):
        consumer.assign([TopicPartition(topic, number) for number in range(SESSION_PARTITIONS)])
        while progress.events < events:
            _see(progress, await consumer.getmany(timeout_ms=POLL_MS))
    return progress


def _see(progress: Progress, fetched: Any) -> None:
    records = [record for records in fetched.values() for record in records if record.value]
    for record in sorted(records, key=lambda record: record.timestamp):
        progress.see(partition_of(record.key), decode_totals(record.value)[1], record.timestamp)
