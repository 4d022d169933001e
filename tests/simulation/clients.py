"""aiokafka's producer and consumer over the simulated broker: the calls that PML makes of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from aiokafka import TopicPartition
from aiokafka.errors import CommitFailedError, IllegalStateError, OffsetOutOfRangeError

from tests.simulation.broker import Draft, Place, Record
from tests.simulation.groups import Group
from tests.simulation.network import Network

RECORD_BYTES = 60


@dataclass(frozen=True, slots=True)
class Metadata:
    """Where a batch came to lie."""

    offset: int


@dataclass(frozen=True, slots=True)
class Stamp:
    """An answer of `offsets_for_times`."""

    offset: int


class Batch:
    """A record batch while it is filled."""

    def __init__(self, limit: int) -> None:
        self.drafts: list[Draft] = []
        self._limit = limit
        self._size = 0

    def append(self, *, timestamp: Any, key: bytes | None, value: bytes | None, headers: Any = ()) -> Any:
        """Add a record; None where the batch is full (the first is always taken)."""
        size = len(key or b"") + len(value or b"") + RECORD_BYTES
        if self.drafts and self._size + size > self._limit:
            return None
        self.drafts.append(Draft(key, value, tuple(headers)))
        self._size += size
        return self._size

    def size(self) -> int:
        """Its bytes."""
        return self._size

    def close(self) -> None:
        """Nothing more is added."""


class Producer:
    """`AIOKafkaProducer`. A batch that was sent is delivered whatever becomes of its sender."""

    def __init__(self, network: Network, *, max_batch_size: int = 16_384, **_: Any) -> None:
        self._network = network
        self._limit = max_batch_size

    async def start(self) -> None:
        await self._network.hop()

    async def stop(self) -> None:
        await self._network.alive()

    def create_batch(self) -> Batch:
        return Batch(self._limit)

    async def send_batch(self, batch: Batch, topic: str, *, partition: int) -> Any:
        return asyncio.ensure_future(self._delivered((topic, partition), batch.drafts))

    async def send_and_wait(
        self, topic: str, value: bytes | None = None, key: bytes | None = None, **rest: Any
    ) -> Metadata:
        draft = Draft(key, value, tuple(rest.get("headers") or ()))
        return await self._delivered((topic, rest.get("partition") or 0), [draft])

    async def _delivered(self, place: Place, drafts: Sequence[Draft]) -> Metadata:
        network = self._network
        offset = await network.deliver(place[0], lambda: network.broker.append(place, drafts))
        return Metadata(offset)


class Consumer:
    """`AIOKafkaConsumer`: assigned by hand, or by a group where one is given."""

    def __init__(self, network: Network, group: Group | None = None, **_: Any) -> None:
        self._network = network
        self._positions: dict[TopicPartition, int] = {}
        self._paused: set[TopicPartition] = set()
        self._member = None if group is None else group.member(self._revoked, self._assigned)
        self._listener: Any = None
        self._topic = ""

    async def start(self) -> None:
        await self._network.hop()

    async def stop(self) -> None:
        if self._member is not None:
            self._member.leave()

    def assign(self, pairs: Iterable[TopicPartition]) -> None:
        self._positions = {pair: self._positions.get(pair, 0) for pair in pairs}
        self._paused.clear()

    def subscribe(self, topics: Sequence[str], listener: Any) -> None:
        assert self._member is not None
        self._topic, self._listener = topics[0], listener
        self._member.join()

    def assignment(self) -> set[TopicPartition]:
        return set(self._positions)

    def seek(self, pair: TopicPartition, offset: int) -> None:
        self._check(pair)
        self._positions[pair] = offset

    async def seek_to_beginning(self, *pairs: TopicPartition) -> None:
        for pair in pairs:
            self._positions[pair] = self._lane(pair).first

    async def position(self, pair: TopicPartition) -> int:
        self._check(pair)
        return self._positions[pair]

    def highwater(self, pair: TopicPartition) -> int:
        self._check(pair)
        return self._lane(pair).end

    def pause(self, *pairs: TopicPartition) -> None:
        self._paused.update(pairs)

    def resume(self, *pairs: TopicPartition) -> None:
        for pair in pairs:
            self._check(pair)
            self._paused.discard(pair)

    async def end_offsets(self, pairs: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        await self._network.hop()
        found = {pair: self._lane(pair).end for pair in pairs}
        await self._network.hop()
        return found

    async def beginning_offsets(self, pairs: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        await self._network.hop()
        return {pair: self._lane(pair).first for pair in pairs}

    async def offsets_for_times(self, times_ms: Mapping[Any, int]) -> dict[TopicPartition, Stamp | None]:
        await self._network.hop()
        return {pair: self._since(pair, time_ms) for pair, time_ms in times_ms.items()}

    async def committed(self, pair: TopicPartition) -> int | None:
        assert self._member is not None
        await self._network.hop()
        return self._network.broker.committed.get((self._member.group.name, pair.topic, pair.partition))

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        assert self._member is not None
        member = self._member
        generation = member.generation
        await self._network.hop()
        if not member.current(generation):
            raise CommitFailedError()
        for pair, offset in offsets.items():
            self._network.broker.committed[member.group.name, pair.topic, pair.partition] = offset
        await self._network.hop()

    async def getmany(
        self, *pairs: TopicPartition, timeout_ms: int = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[Record]]:
        """Records of these partitions, or of all, as soon as there are some."""
        await self._network.alive()
        found = self._fetched(pairs, max_records)
        if not found and timeout_ms:
            await self._moved(pairs, timeout_ms / 1000)
            found = self._fetched(pairs, max_records)
        if found:
            await self._network.hop()
        return {pair: records for pair, records in found.items() if self._taken(pair, records)}

    async def _moved(self, pairs: Sequence[TopicPartition], timeout_s: float) -> None:
        watched = [(pair.topic, pair.partition) for pair in pairs or self._positions]
        waiting = self._network.broker.moved(watched)
        timer = asyncio.get_running_loop().call_later(timeout_s, _finish, waiting)
        try:
            await waiting
        finally:
            timer.cancel()

    def _fetched(
        self, pairs: Sequence[TopicPartition], max_records: int | None
    ) -> dict[TopicPartition, list[Record]]:
        found: dict[TopicPartition, list[Record]] = {}
        for pair in pairs or tuple(self._positions):
            if pair not in self._positions or pair in self._paused:
                continue
            lane, at = self._lane(pair), self._positions[pair]
            if at < lane.first:
                raise OffsetOutOfRangeError({pair: at})
            records = lane.records[at : at + (max_records or 100)]
            if records:
                found[pair] = records
        return found

    def _taken(self, pair: TopicPartition, records: list[Record]) -> bool:
        """Whether the records are still what comes next; a seek or a rebalance may have come between."""
        if self._positions.get(pair) != records[0].offset or pair in self._paused:
            return False
        self._positions[pair] = records[-1].offset + 1
        return True

    async def _revoked(self, numbers: set[int]) -> None:
        await self._listener.on_partitions_revoked({TopicPartition(self._topic, n) for n in numbers})
        self._positions.clear()

    async def _assigned(self, numbers: set[int]) -> None:
        assert self._member is not None
        name = self._member.group.name
        pairs = {TopicPartition(self._topic, number) for number in sorted(numbers)}
        committed = self._network.broker.committed
        self._positions = {pair: committed.get((name, *pair)) or self._lane(pair).first for pair in pairs}
        self._paused.clear()
        await self._listener.on_partitions_assigned(pairs)

    def _since(self, pair: TopicPartition, time_ms: int) -> Stamp | None:
        lane = self._lane(pair)
        later = (record.offset for record in lane.records[lane.first :] if record.timestamp >= time_ms)
        first = next(later, None)
        return None if first is None else Stamp(first)

    def _lane(self, pair: TopicPartition) -> Any:
        return self._network.broker.lane((pair.topic, pair.partition))

    def _check(self, pair: TopicPartition) -> None:
        if pair not in self._positions:
            raise IllegalStateError(f"{pair} is not assigned")


def _finish(waiting: asyncio.Future[None]) -> None:
    with suppress(asyncio.InvalidStateError):
        waiting.set_result(None)
