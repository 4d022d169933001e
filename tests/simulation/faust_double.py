"""Faust as the orchestrator uses it: hooks around a rebalance, a table restored from its changelog, chunks.

The order is the one that was measured on Faust (ORCHESTRATOR.md): revoked, assigned, changelog replay,
rebalance complete (awaited), seek, first input. A newer generation cancels whatever of it still runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

from faust.types import TP

from pml.schemas.topics import Topics
from pml.streams.app import Delivery
from pml.streams.orchestrator.partition import Partition
from tests.simulation.broker import Record
from tests.simulation.groups import Group, Member
from tests.simulation.network import Network

CHANGELOG = "pml.orchestrator-sessions-changelog"
# Records of one fetch that were dropped on the way leave a hole, which the inbox has read again.
HOLE_SHARE = 0.05
AGAIN_SHARE = 0.05


@dataclass
class Signal:
    """A hook of Faust: who connected is called, awaited."""

    receivers: list[Callable[..., Awaitable[Any]]] = field(default_factory=list)

    def connect(self, receiver: Callable[..., Awaitable[Any]]) -> None:
        """Call this."""
        self.receivers.append(receiver)

    async def send(self, *arguments: Any) -> None:
        """Call everybody, one after another."""
        for receiver in self.receivers:
            await receiver(*arguments)


class FaustDouble:
    """One Faust app in one process."""

    def __init__(self, network: Network, random: Random, topics: Topics, group: Group) -> None:
        self._network, self._random, self._topics = network, random, topics
        self.on_partitions_revoked, self.on_partitions_assigned = Signal(), Signal()
        self.on_rebalance_complete = Signal()
        self.delivery = Delivery(200, 1 << 24, lambda assigned: {})
        self.rebalancing = False
        self.consumer = self
        self.store: dict[bytes, bytes] = {}
        self.partition_of: Callable[[int], Partition | None] = lambda number: None
        self._member: Member = group.member(self._revoked, self._assigned)
        self._paused: set[TP] = set()
        self._feeding: list[asyncio.Task[None]] = []

    @property
    def consumer_generation_id(self) -> int:
        """The generation that we follow."""
        return self._member.generation

    def Table(self, name: str, **_: Any) -> Any:  # noqa: N802
        """The one table; its store is a dictionary, as Faust's in memory is."""
        changelog = SimpleNamespace(get_topic_name=lambda: CHANGELOG)
        return SimpleNamespace(data=SimpleNamespace(data=self.store), changelog_topic=changelog)

    def start(self) -> None:
        """Join the group."""
        self._member.join()

    def assignment(self) -> set[TP]:
        """Both inputs of our partitions."""
        names = (self._topics.commands, self._topics.tool_outcomes)
        return {TP(topic, number) for topic in names for number in self._member.numbers}

    def pause_partitions(self, inputs: Iterable[TP]) -> None:
        """Deliver nothing of these."""
        self._paused.update(inputs)

    def resume_partitions(self, inputs: Iterable[TP]) -> None:
        """Go on."""
        self._paused.difference_update(inputs)

    async def _revoked(self, numbers: set[int]) -> None:
        self.rebalancing = True
        for task in self._feeding:
            task.cancel()
        await asyncio.gather(*self._feeding, return_exceptions=True)
        self._feeding.clear()
        await self.on_partitions_revoked.send(self, numbers)

    async def _assigned(self, numbers: set[int]) -> None:
        assigned = self.assignment()
        await self.on_partitions_assigned.send(self, assigned)
        for number in sorted(numbers):
            await self._restore(number)
        await self.on_rebalance_complete.send(self)
        positions = self.delivery.positions(assigned)
        self._paused.clear()
        self.rebalancing = False
        self._feeding = [asyncio.ensure_future(self._feed(tp, at)) for tp, at in positions.items()]

    async def _restore(self, number: int) -> None:
        """Replay the changelog of a partition, in parts, up to where it ended when the replay began."""
        lane = self._network.broker.lane((CHANGELOG, number))
        records = lane.records[: lane.end]
        part = self._random.choice([5, 50, 500])
        for start in range(0, len(records), part):
            await self._network.hop()
            for record in records[start : start + part]:
                self._apply(record)

    def _apply(self, record: Record) -> None:
        assert record.key is not None
        if record.value is None:
            self.store.pop(record.key, None)
        else:
            self.store[record.key] = record.value

    async def _feed(self, tp: TP, position: int) -> None:
        """Bring the records of one input in chunks of any size; some twice, some never."""
        place = (tp.topic, tp.partition)
        lane = self._network.broker.lane(place)
        while True:
            while position >= lane.end or tp in self._paused:
                await asyncio.wait([self._network.broker.moved([place])], timeout=1.0)
            await self._network.hop()
            chunk = lane.records[max(position, lane.first) : position + self._random.choice([1, 2, 5, 200])]
            if not chunk:
                position = max(position, lane.first)
                continue
            position = chunk[-1].offset + 1
            if tp in self._paused:
                position = chunk[0].offset
                continue
            self._hand_over(tp.partition, chunk, last=position >= lane.end)

    def _hand_over(self, number: int, chunk: list[Record], last: bool) -> None:
        """Only what something follows is dropped: a hole is seen by what comes after it."""
        partition = self.partition_of(number)
        if partition is None:
            return
        if not last and self._lossy(HOLE_SHARE):
            self._network.counts["chunk dropped on the way"] += 1
            return
        partition.inbox.put(chunk)
        if self._lossy(AGAIN_SHARE):
            self._network.counts["chunk delivered twice"] += 1
            partition.inbox.put(chunk)

    def _lossy(self, share: float) -> bool:
        return not self._network.quiet and bool(self._network.faulty) and self._random.random() < share
