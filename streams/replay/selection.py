"""What is replayed: where from, of which session, of which stretch of time, and compared or not."""

from __future__ import annotations

from dataclasses import dataclass

from pml.schemas.identifiers import session_key
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.connection import partition_for

KAFKA, CLICKHOUSE, STANDARD_INPUT = "kafka", "clickhouse", "-"


@dataclass(frozen=True, slots=True)
class Selection:
    """What is replayed.

    Attributes:
        source: `KAFKA`, `CLICKHOUSE`, `STANDARD_INPUT` or the name of a file.
        session: tenant and name; None for all.
        since_ms: of each partition only what lies from the first event at or after that time.
        until_ms: and up to the last before that one.
        verify: whether what comes of it is compared with what is live.
    """

    source: str
    session: tuple[str, str] | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    verify: bool = False

    @property
    def whole(self) -> bool:
        """Whether it begins with the log."""
        return self.since_ms is None

    @property
    def has_totals(self) -> bool:
        """Whether what was counted over all of it can be compared."""
        return self.session is None and self.since_ms is None and self.until_ms is None

    @property
    def to_the_end(self) -> bool:
        """Whether all of the log is read, up to where it ended after what is live was read."""
        return self.source == KAFKA and self.has_totals

    @property
    def in_parts(self) -> bool:
        """Whether the source can be read partition by partition, and from a partition on."""
        return self.source in (KAFKA, CLICKHOUSE)

    @property
    def partitions(self) -> tuple[int, ...]:
        """Where its events lie."""
        if self.session is None:
            return tuple(range(SESSION_PARTITIONS))
        return (partition_for(session_key(*self.session)),)
