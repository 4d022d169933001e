"""From arrivals to inputs: fills holes, sends astray records on, buries what cannot be read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from pml.processors.workflow import Input
from pml.streams.log.append import Outgoing
from pml.streams.log.tail import OffsetGone
from pml.streams.orchestrator.inbox import Arrival
from pml.streams.orchestrator.intake import Misrouted, Poison, read
from pml.streams.orchestrator.shell import Shell

log = structlog.get_logger("pml.orchestrator")


@dataclass(frozen=True, slots=True)
class InputReader:
    """Reads arrivals of one partition; what is no input of it is acknowledged elsewhere first."""

    shell: Shell

    async def inputs(self, arrivals: Sequence[Arrival], handled: Mapping[str, int]) -> list[Input]:
        """The inputs among these records, in order, without those that were handled before.

        Raises:
            InDoubt, BrokerUnavailable: a record could not be sent on, or a hole not be read.
        """
        return [
            source
            for arrival in arrivals
            async for record in self._records(arrival)
            if record.offset > handled.get(record.topic, -1)
            for source in await self._input(record)
        ]

    async def _records(self, arrival: Arrival) -> AsyncIterator[Any]:
        if arrival.hole_from is not None:
            async for record in self._missing(arrival.record, arrival.hole_from):
                yield record
        yield arrival.record

    async def _missing(self, after: Any, start: int) -> AsyncIterator[Any]:
        """The records before `after` that were dropped on the way; some may have expired."""
        place = (after.topic, after.partition)
        first = (await self.shell.tails.beginnings([place]))[place]
        if 0 < start < first:
            log.error("inputs expired before they were decided", topic=after.topic, offsets=[start, first])
        try:
            async for records in self.shell.tails.read(*place, max(start, first), after.offset):
                for record in records:
                    yield record
        except OffsetGone:
            log.error("inputs expired while they were read", topic=after.topic, offset=start)

    async def _input(self, record: Any) -> tuple[Input, ...]:
        found = read(self.shell.topics, record)
        if isinstance(found, Misrouted):
            again = Outgoing(found.key, record.value, record.headers)
            await self.shell.send(record.topic, found.partition, [again])
            return ()
        if isinstance(found, Poison):
            await self.shell.bury(record, "decode", found.error)
            return (found.answer,) if found.answer is not None else ()
        self.shell.payloads.remember(found, len(record.value or b""))
        return (found,)
