"""Queries in a bounded pool of threads: the engine blocks, the event loop must not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from pml.clickhouse.embedded.engine import Engine, Query
from pml.clickhouse.embedded.errors import TOO_MANY_SIMULTANEOUS_QUERIES, ClickHouseError
from pml.clickhouse.embedded.execution import Execution

T = TypeVar("T")

# Queries that run at once: the sink, the command line, a dashboard. Two cores gain nothing from more.
MAX_RUNNING = 8
MAX_WAITING = 64


@dataclass(slots=True)
class Running:
    """A query that holds a slot until `release`."""

    execution: Execution
    release: Callable[[], None]


class Queries:
    """Runs queries in a bounded pool of threads; what finds the queue full is refused."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._threads = ThreadPoolExecutor(MAX_RUNNING, thread_name_prefix="query")
        # Of their own: what ends queries must not wait for a thread that one of them has.
        self._closers = ThreadPoolExecutor(MAX_RUNNING, thread_name_prefix="close")
        self._slots = asyncio.Semaphore(MAX_RUNNING)
        self._waiting = 0

    async def begin(self, query: Query) -> Running:
        """
        Raises:
            ClickHouseError: refused by the engine, or too many queries wait already.
        """
        await self._slot()
        try:
            execution = await self.call(self.engine.start, query)
        except BaseException:
            self._slots.release()
            raise
        return Running(execution, lambda: self._finish(execution))

    async def call(self, work: Callable[..., T], *arguments: Any) -> T:
        """What `work` returns, called in a thread of the pool."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)

    async def blocks(self, execution: Execution) -> AsyncIterator[bytes]:
        """What is still to be read of a result.

        Raises:
            ClickHouseError: the query failed.
        """
        while True:
            block: bytes | None = await self.call(execution.read)
            if block is None:
                return
            yield block

    def close(self) -> None:
        """Wait for what runs, then let go of the folder."""
        self._threads.shutdown(wait=True)
        self._closers.shutdown(wait=True)
        self.engine.close()

    async def _slot(self) -> None:
        if self._waiting >= MAX_WAITING:
            raise ClickHouseError(
                TOO_MANY_SIMULTANEOUS_QUERIES, f"More than {MAX_WAITING} queries wait already."
            )
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1

    def _finish(self, execution: Execution) -> None:
        """Close in a thread: a block may still be read until its query is killed. That frees the slot."""
        closing = asyncio.get_running_loop().run_in_executor(self._closers, execution.close)
        closing.add_done_callback(lambda _: self._slots.release())
