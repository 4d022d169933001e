"""Waiting for what announces itself to nobody: another process, a port, a lock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


async def until(
    condition: Callable[[], bool | Awaitable[bool]], every_s: float, timeout_s: float | None = None
) -> bool:
    """Waits until the condition holds, asking every `every_s` seconds; whether it did within `timeout_s`."""
    try:
        async with asyncio.timeout(timeout_s):
            while not await _holds(condition):
                await asyncio.sleep(every_s)
    except TimeoutError:
        return False
    return True


async def _holds(condition: Callable[[], bool | Awaitable[bool]]) -> bool:
    answer = condition()
    return answer if isinstance(answer, bool) else await answer
