"""Times as the contract writes them: RFC 3339 UTC with microseconds; milliseconds inside the core."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def to_rfc3339(time_ms: int) -> str:
    """Milliseconds since 1970 as `2026-11-22T10:00:00.123000Z`."""
    return (_EPOCH + timedelta(milliseconds=time_ms)).isoformat(timespec="microseconds")[:-6] + "Z"


def from_rfc3339(text: str) -> int:
    """Milliseconds since 1970 of an RFC 3339 time; a time without zone counts as UTC."""
    moment = datetime.fromisoformat(text)
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MILLISECOND
