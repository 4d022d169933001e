"""How far a run is, told to a client while it waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pml.streams.mcp_server.door import Report

# A client that takes nothing more gets its answer late, and no progress at all.
FLUSH_S = 1.0


class Progress:
    """Steps that rise strictly; of several that come while one is being sent, only the furthest is told."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._furthest = 0
        self._next: tuple[int, int, str] | None = None
        self._closed = False
        self._changed = asyncio.Event()

    def tell(self, ended: int, total: int, early: int) -> None:
        """So many tasks have ended of all, so many were served early."""
        if ended <= self._furthest:
            return
        self._furthest = ended
        self._next = (ended, max(ended, total), f"{ended} of {total} tasks ended, {early} served early")
        self._changed.set()

    def close(self) -> None:
        """Nothing more comes."""
        self._closed = True
        self._changed.set()

    async def run(self) -> None:
        """Send what is told until nothing more comes."""
        while self._next is not None or not self._closed:
            await self._changed.wait()
            self._changed.clear()
            step, self._next = self._next, None
            if step is not None:
                await self._report(*step)


@asynccontextmanager
async def telling(report: Report) -> AsyncIterator[Progress]:
    """Progress that is sent while the block runs, and wholly before it is left."""
    progress = Progress(report)
    sending = asyncio.create_task(progress.run())
    try:
        yield progress
        progress.close()
        await asyncio.wait((sending,), timeout=FLUSH_S)
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
