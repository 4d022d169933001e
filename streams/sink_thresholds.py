"""The history of thresholds: records of the catalog as rows of the store, one sink of all.

The store itself knows how far it has them, and a row is named by its place in the catalog, so a range that is
inserted again changes nothing. The catalog is compacted, but nothing of its newest day (schemas/topics.py).
"""

from __future__ import annotations

import asyncio
from typing import Any

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition

from pml.clickhouse.rows import THRESHOLD_COLUMNS, THRESHOLDS_TABLE, threshold_row
from pml.schemas.catalog import ThresholdOverride, ThresholdRecord
from pml.schemas.codec import decode_catalog
from pml.schemas.errors import PMLError, StoreUnavailable
from pml.streams.connection import client_options
from pml.streams.settings import Settings
from pml.streams.sink_rows import Row
from pml.streams.sink_store import SinkStore
from pml.streams.sources import opened

# A person looks at a history minutes later; each poll that finds something is an insert.
POLL_MS = 1_000
BATCH_RECORDS = 1_000
# As the sink: a store that starts again is asked soon, one that is away for hours twelve times a minute.
RETRY_FIRST_S, RETRY_MAX_S = 0.1, 5.0

log = structlog.get_logger("pml.sink.thresholds")


class ThresholdHistory:
    """Follows the catalog for ever; the sink that owns partition 0 of the log runs it."""

    def __init__(self, settings: Settings, store: SinkStore) -> None:
        self._settings = settings
        self._store = store
        self._pair = TopicPartition(settings.topics.catalog, 0)

    async def run(self) -> None:
        """Insert what the store does not have yet, then what comes.

        Raises:
            BrokerUnavailable: the broker does not answer when this begins.
            ConfigurationError: the store has no tables; `pml migrate` makes them.
            QueryError: the store refuses the rows.
        """
        consumer = AIOKafkaConsumer(
            **client_options(self._settings), enable_auto_commit=False, auto_offset_reset="earliest"
        )
        async with opened(consumer, self._settings):
            consumer.assign([self._pair])
            consumer.seek(self._pair, await self._begin(consumer))
            while True:
                found = await consumer.getmany(self._pair, timeout_ms=POLL_MS, max_records=BATCH_RECORDS)
                await self._keep(found.get(self._pair, []))

    async def _begin(self, consumer: Any) -> int:
        """Behind what the store has; at the beginning where the catalog is another one than it was."""
        highest: int | None = await self._until_taken(self._store.highest, THRESHOLDS_TABLE, "log_offset")
        end = (await consumer.end_offsets([self._pair]))[self._pair]
        return 0 if highest is None or highest >= end else highest + 1

    async def _keep(self, records: list[Any]) -> None:
        rows = [row for row in map(_row, records) if row is not None]
        if rows:
            # No token: the store would take ranges of a catalog that was made anew for the old ones.
            await self._until_taken(self._store.insert, rows, None, THRESHOLDS_TABLE, THRESHOLD_COLUMNS)

    async def _until_taken(self, ask: Any, *arguments: Any) -> Any:
        delay_s = RETRY_FIRST_S
        while True:
            try:
                return await ask(*arguments)
            except StoreUnavailable:
                await asyncio.sleep(delay_s)
                delay_s = min(2 * delay_s, RETRY_MAX_S)


def _row(record: Any) -> Row | None:
    """The row of a record about a threshold; what cannot be read, every reader of the catalog passes over."""
    try:
        found = decode_catalog(record.value) if record.value is not None else None
        if found is None or not isinstance(found.data, (ThresholdRecord, ThresholdOverride)):
            return None
        manual = isinstance(found.data, ThresholdOverride)
        return threshold_row(record.offset, found.id, found.data.model_dump(), manual=manual)
    except (PMLError, ValueError) as error:
        log.warning("catalog record passed over", offset=record.offset, reason=str(error))
        return None
