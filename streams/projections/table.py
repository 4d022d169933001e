"""The table of the metrics: its name, its keys, its changelog."""

from __future__ import annotations

from pml.schemas.errors import LogCorrupted
from pml.streams.settings import Settings

ROLE = "metrics"
TABLE = "totals"
# Twelve keys: whatever is behind the newest twelve records is soon gone, so a restart reads little.
CHANGELOG = {"cleanup.policy": "compact", "segment.ms": "60000", "min.cleanable.dirty.ratio": "0.01"}
# One table write a chunk: after a pause the whole of a fetch is one.
CHUNK_RECORDS = 2_000


def key_of(partition: int) -> bytes:
    """The key of a partition's value; it begins with the partition, so that two owners never share one."""
    return f"{partition}/{TABLE}".encode()


def partition_of(key: bytes) -> int:
    """The partition of a key.

    Raises:
        LogCorrupted: the key is none of ours.
    """
    number, separator, name = key.partition(b"/")
    if not (separator and name == TABLE.encode() and number.isdigit()):
        raise LogCorrupted(f"the metrics table holds a key that is none of its own: {key!r}")
    return int(number)


def changelog_topic(settings: Settings) -> str:
    """The compacted topic in which Faust keeps the table."""
    return f"{settings.group(ROLE)}-{TABLE}-changelog"
