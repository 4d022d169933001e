"""The sink's hands on ClickHouse: connected when it is needed, and again after it was away."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pml.clickhouse.client import Store
from pml.clickhouse.rows import EVENT_COLUMNS, EVENTS_TABLE
from pml.schemas.errors import ConfigurationError, QueryError, StoreUnavailable
from pml.streams.connection import store_url
from pml.streams.settings import Settings
from pml.streams.sink_rows import Row

# ClickHouse's codes: unknown table, unknown database.
NO_TABLES = frozenset({60, 81})


class SinkStore:
    """A store that may go away; its address is looked up again each time it comes back."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._store: Store | None = None
        self._connecting = asyncio.Lock()

    async def insert(
        self,
        rows: Sequence[Row],
        token: str | None = None,
        table: str = EVENTS_TABLE,
        columns: Sequence[str] = EVENT_COLUMNS,
    ) -> None:
        """Insert rows; with the same token again, nothing is stored twice.

        Raises:
            StoreUnavailable: try again with the same token.
            ConfigurationError: the store has no tables.
            QueryError: the store will never take them.
        """
        store = await self._connected()
        with self._failing(store):
            await asyncio.to_thread(store.insert, table, columns, rows, token=token)

    async def highest(self, table: str, column: str) -> int | None:
        """The highest number in a column; None where the table is empty.

        Raises:
            StoreUnavailable, ConfigurationError, QueryError: as `insert`.
        """
        store = await self._connected()
        with self._failing(store):
            answer = await asyncio.to_thread(store.query, f"SELECT max({column}), count() FROM {table}")
        highest, count = answer.rows[0]
        return int(highest) if int(count) else None

    @contextmanager
    def _failing(self, store: Store) -> Iterator[None]:
        """A store that went away is looked up again; one without tables says what to do."""
        try:
            yield
        except StoreUnavailable:
            if self._store is store:
                self._store = None
            raise
        except QueryError as error:
            if error.details.get("number") in NO_TABLES:
                raise ConfigurationError(
                    f"{store.address} has no tables of PML; `pml migrate` makes them"
                ) from error
            raise

    def close(self) -> None:
        """Let go of the connections."""
        if self._store is not None:
            self._store.close()
            self._store = None

    async def _connected(self) -> Store:
        async with self._connecting:
            if self._store is None:
                self._store = await asyncio.to_thread(self._connect)
            return self._store

    def _connect(self) -> Store:
        return Store.connect(store_url(self._settings), self._settings.clickhouse.database)
