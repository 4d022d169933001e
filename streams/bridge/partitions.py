"""The partitions of the calls that this bridge owns, or still answers calls of."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pml.streams.bridge.partition import Partition


class Partitions:
    """Partitions by number. One that was lost stays until its last unsafe call is answered."""

    def __init__(self, new: Callable[[int], Partition]) -> None:
        self._new = new
        self._known: dict[int, Partition] = {}

    def get(self, number: int) -> Partition | None:
        """The partition, if it is known here."""
        return self._known.get(number)

    def all(self) -> list[Partition]:
        """Every partition, also the lost ones."""
        return list(self._known.values())

    def owned(self) -> list[Partition]:
        """The partitions that calls are taken from now."""
        return [partition for partition in self._known.values() if partition.ready]

    def suspend(self) -> None:
        """A rebalance begins: nothing is taken until the new assignment is recovered."""
        for partition in self._known.values():
            partition.ready = False

    def assign(self, numbers: Iterable[int]) -> tuple[list[Partition], list[Partition]]:
        """The partitions that are ours now, and those that were and are not any more."""
        ours = set(numbers)
        lost = [self._known[number] for number in self._known.keys() - ours]
        for partition in lost:
            partition.ready = False
            partition.claims.lost = True
            if not partition.calls:
                del self._known[partition.number]
        return [self._known.setdefault(number, self._new(number)) for number in sorted(ours)], lost
