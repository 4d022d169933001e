"""What the bridge must know of a partition before it takes calls from it (DESIGN §2, rule 6)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from aiokafka import TopicPartition

from pml.schemas.codec import decode_outcome
from pml.schemas.errors import UndecodableRecord, UnknownMessage
from pml.schemas.topics import Topics
from pml.streams.bridge.claims import REMEMBERED_MS
from pml.streams.bridge.outcomes import CALL_ID_HEADER
from pml.streams.bridge.partition import Partition
from pml.streams.clock import Clock, now_ms
from pml.streams.log.reader import LogRecord, header
from pml.streams.log.tail import Tails


@dataclass(frozen=True, slots=True)
class Recovery:
    """Reads claims and outcomes of partitions that were assigned to us.

    Outcomes are read from the time of the first call that is not committed: those before it were
    answered before their calls were committed. Claims are read from 25 h ago, further than any call
    record rests: a call that was committed long ago can be sent again, and must not run again.
    """

    topics: Topics
    tails: Tails
    consumer: Any
    now_ms: Clock = now_ms

    async def recover(self, partition: Partition) -> int:
        """Make the partition ready; where its calls must be read from.

        Raises:
            BrokerUnavailable, OffsetGone, LogCorrupted: of the readers.
        """
        number = partition.number
        partition.claims.lost = False
        await partition.claims.load(
            await self._since(self.topics.call_claims, number, self.now_ms() - REMEMBERED_MS)
        )
        position = await self._position(number)
        partition.begin(position, await self._answered(number, position))
        return position

    async def _position(self, number: int) -> int:
        pair = (self.topics.tool_calls, number)
        committed = await self.consumer.committed(TopicPartition(*pair))
        first = (await self.tails.beginnings([pair]))[pair]
        return max(committed or 0, first)

    async def _answered(self, number: int, position: int) -> list[str]:
        uncommitted = (await self.tails.at(self.topics.tool_calls, number, [position])).get(position)
        if uncommitted is None:
            return []
        topic = self.topics.tool_outcomes
        start = await self._since(topic, number, uncommitted.timestamp)
        end = await self.tails.end(topic, number)
        found: list[str] = []
        async for records in self.tails.read(topic, number, start, end):
            found += answered_calls(records)
        return found

    async def _since(self, topic: str, number: int, time_ms: int) -> int:
        """The first offset whose record is not older than this; what comes while it is asked for counts."""
        pair = TopicPartition(topic, number)
        end = await self.tails.end(topic, number)
        found = (await self.consumer.offsets_for_times({pair: time_ms}))[pair]
        return end if found is None else int(found.offset)


def answered_calls(records: Iterable[LogRecord]) -> list[str]:
    """The calls that these outcomes answer; a record that is no outcome answers none."""
    return [call_id for record in records if (call_id := _call_id(record))]


def _call_id(record: LogRecord) -> str | None:
    named = header(record, CALL_ID_HEADER)
    if named is not None:
        return named.decode(errors="replace")
    try:
        return decode_outcome(record.value).call_id
    except (UndecodableRecord, UnknownMessage):
        return None
