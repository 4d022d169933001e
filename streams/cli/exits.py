"""Exit codes (CONTRACT.md, For programs)."""

from __future__ import annotations

from pml.schemas.errors import (
    BrokerUnavailable,
    ConfigurationError,
    PMLError,
    QueryError,
    Refused,
    SourceError,
    StoreUnavailable,
    UndecodableRecord,
    WaitedTooLong,
)

DONE = 0
FAILED = 1
USAGE = 2
REFUSED = 3
UNREACHABLE = 4
WAITED_TOO_LONG = 5
WAITING = 6
INTERRUPTED = 130

_BY_ERROR: tuple[tuple[type[PMLError], int], ...] = (
    (WaitedTooLong, WAITED_TOO_LONG),
    (BrokerUnavailable, UNREACHABLE),
    (StoreUnavailable, UNREACHABLE),
    (Refused, REFUSED),
    (ConfigurationError, USAGE),
    (SourceError, USAGE),
    (UndecodableRecord, USAGE),
    (QueryError, USAGE),
)


def exit_code(error: PMLError) -> int:
    """The exit code of an error; 1 where no other says it better."""
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), FAILED)
