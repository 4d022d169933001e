"""When a server that failed may be started again."""

from __future__ import annotations

# A server that crashes once is back at once; one that keeps crashing costs two starts a minute.
FIRST_S = 0.5
MOST_S = 30.0


class Backoff:
    """Doubling delays between failed starts. Times are seconds of a monotonic clock."""

    def __init__(self, first_s: float = FIRST_S, most_s: float = MOST_S) -> None:
        self._first_s, self._most_s = first_s, most_s
        self._failures = 0
        self._until_s = 0.0

    def failed(self, now_s: float) -> None:
        """A start failed, or a server died: the first time costs nothing, then delays double."""
        self._failures += 1
        exponent = min(self._failures - 2, 30)
        delay_s = min(self._most_s, self._first_s * 2**exponent) if self._failures > 1 else 0.0
        self._until_s = now_s + delay_s

    def succeeded(self) -> None:
        """It answered a call: the next failure is a first one again."""
        self._failures, self._until_s = 0, 0.0

    def remaining_s(self, now_s: float) -> float:
        """How long until it may be started again, in seconds."""
        return max(0.0, self._until_s - now_s)
