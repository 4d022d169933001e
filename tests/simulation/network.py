"""What lies between a client and the broker: time, and everything that gets lost on the way."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from aiokafka.errors import KafkaTimeoutError, NotLeaderForPartitionError

from tests.simulation.broker import Broker
from tests.simulation.loop import PROCESS, SimulatedLoop

# One way, in seconds; now and then something takes longer.
QUICK_S = (0.0002, 0.002)
SLOW_S = (0.01, 0.4)
SLOW_SHARE = 0.05
# What is in doubt lands this much after the appender gave up, or before.
LATE_S = (0.1, 12.0)

APPEND_FAULTS = ("ack lost, landed", "ack lost, never landed", "ack lost, lands late", "refused")


@dataclass
class Network:
    """The way to the broker.

    `faulty` says by topic how likely an append goes wrong; `counts` how often each fault happened.
    """

    loop: SimulatedLoop
    broker: Broker
    random: Random
    faulty: Mapping[str, float] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    quiet: bool = False

    async def hop(self) -> None:
        """One way; a process that died meanwhile never arrives."""
        slow = self.random.random() < SLOW_SHARE
        await asyncio.sleep(self.random.uniform(*(SLOW_S if slow else QUICK_S)))
        await self.alive()

    async def alive(self) -> None:
        """Go on, unless the process is dead: then for ever wait."""
        process = PROCESS.get()
        if process is not None and not process.alive:
            await self.loop.create_future()

    async def deliver(self, topic: str, land: Callable[[], Any]) -> Any:
        """Bring one request to the broker and its answer back, or lose either.

        Raises:
            KafkaError: as the client library would see it.
        """
        await self.hop()
        fault = self._fault(topic)
        if fault is None:
            answer = land()
            await self.hop()
            return answer
        self.counts[fault] += 1
        if fault == "refused":
            raise NotLeaderForPartitionError()
        if fault == "ack lost, landed":
            land()
        elif fault == "ack lost, lands late":
            self.loop.outside(self.random.uniform(*LATE_S), land)
        await asyncio.sleep(self.random.choice([0.05, 1.0, 60.0]))
        raise KafkaTimeoutError()

    def _fault(self, topic: str) -> str | None:
        likely = 0.0 if self.quiet else self.faulty.get(topic, 0.0)
        return self.random.choice(APPEND_FAULTS) if likely and self.random.random() < likely else None
