"""What a sink holds between two rebalances: its partitions, what waits of them, and the work on it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from pml.streams.sink_buffer import Buffer


@dataclass(slots=True, eq=False)
class Assignment:
    """One assignment of the group.

    Whoever has waited for anything asks whether it is still the sink's before touching it.
    """

    partitions: frozenset[int]
    buffers: dict[int, Buffer] = field(default_factory=dict)
    flushes: dict[int, asyncio.Task[None]] = field(default_factory=dict)
    history: asyncio.Task[None] | None = None

    @property
    def unopened(self) -> frozenset[int]:
        """The partitions of which it is not known yet where the group stands."""
        return self.partitions - self.buffers.keys()

    def collect(self) -> None:
        """Forget the work that ended; an error of it is raised here."""
        for partition, flush in list(self.flushes.items()):
            if flush.done():
                del self.flushes[partition]
                flush.result()
        if self.history is not None and self.history.done():
            self.history.result()

    async def cancel(self) -> None:
        """End the work: whoever comes next repeats what is not committed."""
        work = [*self.flushes.values(), *([self.history] if self.history else [])]
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
