"""One partition of the log and its owner: one task merges both inputs, decides, appends, acknowledges."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from pml.processors.workflow import Input
from pml.schemas.errors import PMLError
from pml.streams.crash_points import crash_point
from pml.streams.log.append import InDoubt, Outgoing, Overtaken
from pml.streams.orchestrator.calls import send_calls
from pml.streams.orchestrator.deadlines import Deadlines
from pml.streams.orchestrator.inbox import Arrival, Inbox
from pml.streams.orchestrator.reading import InputReader
from pml.streams.orchestrator.shell import Shell
from pml.streams.orchestrator.slices import Decider, Slice
from pml.streams.orchestrator.states import States
from pml.streams.orchestrator.table import PartitionTable
from pml.streams.telemetry import APPEND_CONFLICTS

log = structlog.get_logger("pml.orchestrator")


class Left(PMLError):
    """Another owner took the partition, and the group no longer names us."""

    code = "PARTITION_LEFT"


class Partition:
    """What the owner of a partition holds. Whoever changes it holds `lock`.

    Args:
        pause: called with True where the inputs are to pause, with False where they are to go on.
        regain: awaited when an append is overtaken or in doubt; afterwards the states are those of the log.

    Attributes:
        term: the offset of our `partition.taken`; -1 before the first.
        end: the log offset folded so far, which the next append expects.
        causes: of each input topic the highest offset that has an event.
        handled: of each input topic the highest offset that was decided, with or without one.
        ready: whether it was taken whole; one that is not is taken again.
        restoring: from a rebalance's beginning until the partition is taken or kept: Faust may replay the
            changelog into the table, so nothing of ours may get in between.
        restamp: set where every record of the table is to be written again, under a new term.
    """

    def __init__(
        self,
        number: int,
        shell: Shell,
        table: PartitionTable,
        pause: Callable[[bool], None],
        regain: Callable[[Partition], Awaitable[None]],
    ) -> None:
        self.number = number
        self.shell = shell
        self.table = table
        self.lock = asyncio.Lock()
        self.term = -1
        self.end = 0
        self.causes: dict[str, int] = {}
        self.handled: dict[str, int] = {}
        self.ready = False
        self.restoring = False
        self.restamp = asyncio.Event()
        self.states = States(number, table, {})
        self.inbox = Inbox(shell.settings.orchestrator.queue_bytes, pause)
        self.deadlines = Deadlines(self._publish, shell.now_ms)
        self._regain = regain
        self._reader = InputReader(shell)

    @property
    def positions(self) -> dict[str, int]:
        """The offset to go on from in each input topic."""
        topics = self.shell.topics
        return {topic: self.handled.get(topic, -1) + 1 for topic in (topics.commands, topics.tool_outcomes)}

    async def run(self) -> None:
        """Decide what arrives, for ever.

        Raises:
            PMLError: something that only a new start can repair.
        """
        limits = self.shell.settings.orchestrator
        while True:
            arrivals = await self.inbox.take(limits.chunk_records, limits.chunk_bytes)
            async with self.lock:
                try:
                    await self._handle(arrivals)
                except Left as left:
                    log.warning("partition left", partition=self.number, reason=left.message)
                    self.inbox.close()

    async def _handle(self, arrivals: Sequence[Arrival]) -> None:
        """(1) read the records, (2) decide, append and send calls in slices, (3) acknowledge, in order."""
        inputs = await self._reader.inputs(arrivals, self.handled)
        while inputs:
            inputs = inputs[await self._advance(inputs) :]
        for arrival in arrivals:
            self._handled(arrival.record.topic, arrival.record.offset)
            if arrival.acknowledge is not None:
                arrival.acknowledge()
        crash_point("orchestrator.after_acknowledge")

    async def _advance(self, inputs: Sequence[Input]) -> int:
        """One slice of rule 3; how many inputs it took in (0 after a doubt: begin again with the same)."""
        decider = Decider(self.states, self.shell.payloads)
        part = await decider.slice(inputs, self.end, self.handled, self.shell.snapshot())
        try:
            await self._append(part)
        except (Overtaken, InDoubt) as doubt:
            APPEND_CONFLICTS.inc()
            log.warning("append in question", partition=self.number, code=doubt.code, reason=doubt.message)
            await self._regain(self)
            return 0
        self._take_in(part)
        await send_calls(self.shell, self.number, part.messages)
        crash_point("orchestrator.after_calls")
        await self._bury(part)
        return part.inputs

    async def _append(self, part: Slice) -> None:
        if part.records:
            crash_point("orchestrator.before_append")
            await self.shell.log.append(self.shell.topics.events, self.number, part.base, part.records)
            crash_point("orchestrator.after_append")

    def _take_in(self, part: Slice) -> None:
        """The slice counts."""
        self.end = part.end
        self.causes |= part.causes
        for topic, offset in part.handled.items():
            self._handled(topic, offset)
        for event in part.events:
            self.states.begin(event)
        for key, session in part.sessions.items():
            self.states.put(key, session)
            self.deadlines.arm(key, session)

    async def _bury(self, part: Slice) -> None:
        for source, failure in part.failures:
            found = await self.shell.tails.at(source.topic, source.partition, [source.offset])
            if source.offset in found:
                await self.shell.bury(found[source.offset], "decide", failure)

    def _handled(self, topic: str, offset: int) -> None:
        self.handled[topic] = max(offset, self.handled.get(topic, -1))

    async def _publish(self, commands: list[Outgoing]) -> None:
        await self.shell.send(self.shell.topics.commands, self.number, commands)
