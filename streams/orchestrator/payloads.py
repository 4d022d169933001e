"""Full values by coordinate: a bounded cache over the input topics where they rest (DESIGN §2, rule 2)."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from typing import Any

from pml.processors.workflow import Address, Input, payload_of
from pml.schemas.calls import CallEnded
from pml.schemas.commands import Command, RunReplan, RunStart, TaskResolve
from pml.schemas.errors import UndecodableRecord, UnknownMessage
from pml.schemas.topics import Topics
from pml.streams.log.tail import Tails

# A decoded value takes about four times its JSON in memory.
WEIGHT = 4
# So many records are read at once ahead of need.
WINDOW = 1_000
# The commands whose values are read again.
HOLDING = (RunStart, RunReplan, TaskResolve)


class PayloadCache:
    """Reads values by address and keeps the last used ones, up to `limit_bytes`."""

    def __init__(self, topics: Topics, tails: Tails, limit_bytes: int) -> None:
        self._topics = topics
        self._tails = tails
        self._limit_bytes = limit_bytes
        self._values: OrderedDict[Address, tuple[Any, int]] = OrderedDict()
        self.size = 0

    def remember(self, source: Input, size: int) -> None:
        """Keep the value of an input that was just read: the next decisions may need it."""
        message = source.message
        if isinstance(message, CallEnded) and message.result is not None:
            self._put(source.address, message.result, size)
        elif isinstance(message, Command) and isinstance(message.data, HOLDING):
            self._put(source.address, message.data, size)

    async def get(self, addresses: Iterable[Address]) -> dict[Address, Any]:
        """The values at these addresses; those that are gone are absent.

        Raises:
            BrokerUnavailable: the broker does not answer.
        """
        wanted = set(addresses)
        found = {address: self._touch(address) for address in wanted if address in self._values}
        missing = wanted - found.keys()
        if missing:
            found |= await self._read(missing)
        return found

    async def warm(self, addresses: Iterable[Address]) -> None:
        """Read these values ahead, in one pass and in order, as far as there is room for them.

        Raises:
            BrokerUnavailable: the broker does not answer.
        """
        missing = sorted(set(addresses) - self._values.keys())
        for start in range(0, len(missing), WINDOW):
            if self.size >= self._limit_bytes // 2:
                return  # what is read ahead must not push out what is in use
            await self._read(missing[start : start + WINDOW])

    async def _read(self, addresses: Iterable[Address]) -> dict[Address, Any]:
        places: dict[tuple[str, int], list[int]] = defaultdict(list)
        for topic, partition, offset in addresses:
            places[topic, partition].append(offset)
        found: dict[Address, Any] = {}
        for (topic, partition), offsets in places.items():
            for offset, record in (await self._tails.at(topic, partition, offsets)).items():
                value = self._decode(topic, record.value)
                if value is not None:
                    found[topic, partition, offset] = value
                    self._put((topic, partition, offset), value, len(record.value))
        return found

    def _decode(self, topic: str, value: bytes | None) -> Any:
        try:
            return None if value is None else payload_of(self._topics, topic, value)
        except (UndecodableRecord, UnknownMessage):
            return None

    def _touch(self, address: Address) -> Any:
        self._values.move_to_end(address)
        return self._values[address][0]

    def _put(self, address: Address, value: Any, size: int) -> None:
        _, before = self._values.pop(address, (None, 0))
        self._values[address] = (value, size * WEIGHT)
        self.size += size * WEIGHT - before
        while self.size > self._limit_bytes:
            _, (_, freed) = self._values.popitem(last=False)
            self.size -= freed
