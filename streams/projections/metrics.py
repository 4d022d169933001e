"""The fold of one partition of the log into the accounts of speculation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pml.processors.speculation.metrics import (
    OBSERVED,
    Observation,
    Totals,
    decode_totals,
    encode_totals,
    observe,
)
from pml.schemas.codec import open_envelope, upcast
from pml.schemas.errors import LogCorrupted, PMLError, UndecodableRecord, UnknownMessage
from pml.schemas.events import EVENTS
from pml.streams.dead_letters import Received
from pml.streams.log.reader import TYPE_HEADER, counted, header

_TYPES = {name.encode(): name for name in OBSERVED}


@dataclass(slots=True)
class Folded:
    """What a chunk added, and the records that count but cannot be read."""

    seen: list[Observation] = field(default_factory=list)
    broken: list[tuple[Received, PMLError]] = field(default_factory=list)


@dataclass(slots=True)
class PartitionMetrics:
    """The accounts of one partition and, as their guard, the last offset that is in them."""

    totals: Totals = field(default_factory=Totals)
    offset: int = -1

    @classmethod
    def decode(cls, value: bytes | None) -> PartitionMetrics:
        """The accounts as they were stored; new ones where there is no value.

        Raises:
            LogCorrupted: a newer release stored them.
        """
        return cls(*decode_totals(value)) if value else cls()

    def encode(self) -> bytes:
        """State and guard in one value."""
        return encode_totals(self.totals, self.offset)

    def fold(self, records: Iterable[Received]) -> Folded:
        """Fold what is not in the accounts yet; only types that matter are decoded.

        Raises:
            LogCorrupted: an event of a newer release, or a hole; nothing of this chunk is in the accounts.
        """
        folded = Folded()
        last = self.offset
        for record in records:
            if record.offset > last:
                _refuse_hole(last, record.offset)
                last = record.offset
                _look(record, folded)
        for seen in folded.seen:
            self.totals.add(seen)
        self.offset = last
        return folded


def _refuse_hole(last: int, offset: int) -> None:
    """The log's offsets are dense; only a new fold may begin later than its first one."""
    if last >= 0 and offset != last + 1:
        raise LogCorrupted(f"the log goes on at offset {offset} after {last}: records in between are gone")


def _look(record: Received, folded: Folded) -> None:
    kind = _TYPES.get(header(record, TYPE_HEADER) or b"")
    if kind is None or not counted(record):
        return
    try:
        seen = _observation(kind, record)
    except UndecodableRecord as error:
        folded.broken.append((record, error))
        return
    if seen is not None:
        folded.seen.append(seen)


def _observation(kind: str, record: Received) -> Observation | None:
    try:
        return observe(kind, upcast(open_envelope(record.value), EVENTS[kind].VERSION).fields["data"])
    except UnknownMessage as error:
        raise LogCorrupted(
            f"the metrics cannot go on at offset {record.offset}: {error.message}; upgrade PML, nothing is "
            "lost until then",
            offset=record.offset,
        ) from error
    except (KeyError, TypeError, AttributeError) as error:
        raise UndecodableRecord(f"{kind} without what its type must say: {error!r}") from None
