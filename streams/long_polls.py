"""How long a consumer's fetch waits at the broker: briefly while there is traffic, long while there is none.

A partition that a fetch leaves out (its records are not taken yet, it is paused, it was just sought) is not
read until that fetch returns, so the fetch of a busy consumer has to be short. That of an idle one asks for
nothing again and again: once nothing is paused and nothing has moved for a second, it may wait as long as
Kafka's own clients do. The first record ends it at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

IDLE_WAIT_MS = 500  # Kafka's default; a rebalance waits as long for a fetch that it cancels
IDLE_AFTER_S = 1.0


class LongPolls:
    """Sets the time that each fetch of one consumer waits.

    Args:
        fetcher: that of a started consumer.
        now: a monotonic time in seconds.
    """

    def __init__(self, fetcher: Any, now: Callable[[], float] = time.monotonic) -> None:
        self._fetcher, self._now = fetcher, now
        self._busy_wait_ms = fetcher._fetch_max_wait_ms
        self._plan = fetcher._get_actions_per_node
        self._standing: dict[Any, int] | None = None
        self._moved_at = now()

    def plan(self, assignment: Any) -> Any:
        """What to ask which broker, as the fetcher plans it."""
        standing = _positions(assignment)
        if standing is None or standing != self._standing:
            self._moved_at = self._now()
        self._standing = standing
        idle = self._now() - self._moved_at >= IDLE_AFTER_S
        self._fetcher._fetch_max_wait_ms = IDLE_WAIT_MS if idle else self._busy_wait_ms
        return self._plan(assignment)


def _positions(assignment: Any) -> dict[Any, int] | None:
    """Where each partition is read on; None while one of them is paused or has no position yet."""
    states = {pair: assignment.state_value(pair) for pair in assignment.tps}
    if any(state.paused or not state.has_valid_position for state in states.values()):
        return None
    return {pair: state.position for pair, state in states.items()}


def poll_long_when_idle(consumer: Any) -> None:
    """Let a started aiokafka consumer wait longer for records while there are none."""
    consumer._fetcher._get_actions_per_node = LongPolls(consumer._fetcher).plan
