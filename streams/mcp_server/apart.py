"""Work that may not be torn apart by whoever waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
_left: set[asyncio.Task[Any]] = set()


async def apart(work: Coroutine[Any, Any, T]) -> T:
    """Run it as a task of its own.

    A request that is cancelled is cancelled at each of its awaits, also at those that close what it opened
    (anyio's scopes). The work is cancelled once, and closes its connections in peace.
    """
    task = asyncio.create_task(work)
    _left.add(task)
    task.add_done_callback(_left.discard)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        raise
