"""The wall clock of the shell. Parts that read it take it as an argument, so that a simulator has its own.

What only measures how long something takes asks the running event loop instead: `loop.time()`.
"""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], int]
"""Milliseconds since 1970."""


def now_ms() -> int:
    """Milliseconds since 1970, of this machine."""
    return time.time_ns() // 1_000_000
