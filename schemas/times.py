"""Times as the contract writes them: RFC 3339 UTC with microseconds; milliseconds inside the core."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def to_rfc3339(time_ms: int) -> str:
    """Milliseconds since 1970 as `2026-11-22T10:00:00.123000Z`."""
    seconds, milliseconds = divmod(time_ms, 1_000)
    return f"{_second(seconds)}.{milliseconds:03}000Z"


@lru_cache(maxsize=256)
def _second(seconds: int) -> str:
    """The part that many times share: what happens together is written together."""
    return (_EPOCH + timedelta(seconds=seconds)).isoformat(timespec="seconds")[:-6]


@lru_cache(maxsize=1_024)  # the events that one input brings bear one time, and deadlines come back
def from_rfc3339(text: str) -> int:
    """Milliseconds since 1970 of an RFC 3339 time; a time without zone counts as UTC."""
    moment = datetime.fromisoformat(text)
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MILLISECOND
