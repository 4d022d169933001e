"""The consumer of `pml.tool-calls`: assignment, recovery, flow, low watermarks (DESIGN §2, rules 6 and 8)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import structlog
from aiokafka import ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import IllegalStateError, KafkaError

from pml.schemas.calls import CallCancel, CallRecord, CallRun
from pml.schemas.codec import decode_call
from pml.schemas.errors import PMLError, UndecodableRecord, UnknownMessage
from pml.schemas.identifiers import session_key
from pml.schemas.topics import Topics
from pml.streams.bridge.call import Call
from pml.streams.bridge.clients import Clients
from pml.streams.bridge.dispatcher import Dispatcher
from pml.streams.bridge.partition import Partition
from pml.streams.bridge.partitions import Partitions
from pml.streams.bridge.recovery import Recovery
from pml.streams.bridge.watermark import Watermark
from pml.streams.clock import Clock, now_ms
from pml.streams.connection import partition_for
from pml.streams.crash_points import crash_point
from pml.streams.telemetry import ConsumerLag

POLL_MS = 200
POLL_RECORDS = 500
COMMIT_S = 0.5
# Of a revocation or a stop, which nothing may hold up; what is not committed is read again.
LAST_COMMIT_S = 3.0
# An unsafe call that runs while the bridge is told to stop gets this long to be answered.
STOP_GRACE_S = 10.0

log = structlog.get_logger("pml.bridge")


class Misplaced(PMLError):
    """A call in the wrong partition: its claim could not protect it there."""

    code = "MISPLACED"


class CallService(ConsumerRebalanceListener):
    """Reads calls, hands them to the dispatcher, commits what is answered."""

    def __init__(
        self,
        topics: Topics,
        clients: Clients,
        partitions: Partitions,
        dispatcher: Dispatcher,
        tasks: asyncio.TaskGroup,
        *,
        now_ms: Clock = now_ms,
    ) -> None:
        self._topic = topics.tool_calls
        self._consumer, self._letters, self._dispatcher = clients.consumer, clients.letters, dispatcher
        self._partitions, self._tasks = partitions, tasks
        dispatcher.on_ended = self.ended
        self._recovery = Recovery(topics, clients.tails, clients.consumer, now_ms)
        self._recovering: asyncio.Task[None] | None = None
        self._committed: dict[int, int] = {}
        self._told = ConsumerLag("bridge")
        self._stopping = False
        self.recovered = asyncio.Event()

    def owns(self, number: int) -> bool:
        """Whether this partition is ours and recovered."""
        return any(partition.number == number for partition in self._partitions.owned())

    def facts(self) -> dict[str, Any]:
        """Where the service stands, for its health and the stall watch."""
        owned = self._partitions.owned()
        lags = {partition.number: self._lag(partition) for partition in owned}
        self._told.tell({(self._topic, number): lag for number, lag in lags.items()})
        busy = self._dispatcher.running + self._dispatcher.waiting
        return {
            "partitions": len(owned),
            "position": sum(partition.watermark.position for partition in owned) + self._dispatcher.answered,
            "lag": sum(lags.values()),
            "running": self._dispatcher.running,
            "waiting": self._dispatcher.waiting,
            "answered": self._dispatcher.answered,
            "blocked": "calls" if busy else "",
        }

    async def run(self, stop: asyncio.Event) -> None:
        """Take calls until `stop` is set; then answer what must be, commit, and return."""
        self._consumer.subscribe([self._topic], listener=self)
        committing = self._tasks.create_task(self._commit_regularly())
        try:
            while not stop.is_set():
                batches = await self._consumer.getmany(timeout_ms=POLL_MS, max_records=POLL_RECORDS)
                read_for = {partition.number: partition.watermark for partition in self._partitions.owned()}
                for pair, records in batches.items():
                    await self._take(pair.partition, records, read_for.get(pair.partition))
        finally:
            self._stopping = True
            committing.cancel()
        await self._finish()

    def ended(self, partition: Partition) -> None:
        """A call has ended: a partition that was full may have room again."""
        if partition.paused and partition.ready and partition.roomy:
            partition.paused = False
            with suppress(IllegalStateError):
                self._consumer.resume(self._pair(partition.number))

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        """Before a rebalance: commit; calls that run go on until it is known who owns what."""
        await self._stop_recovering()
        await self._commit(LAST_COMMIT_S)
        self._committed.clear()
        self._partitions.suspend()

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        """After a rebalance: let go of what is lost, recover the rest, then take calls.

        Who stops is in the group until the consumer has left it, and recovers nothing any more.
        """
        self._consumer.pause(*assigned)
        await self._stop_recovering()
        kept, lost = self._partitions.assign([pair.partition for pair in assigned])
        for partition in lost:
            self._dispatcher.let_go(partition)
        if not self._stopping:
            self._recovering = self._tasks.create_task(self._recover(kept))

    async def _recover(self, partitions: list[Partition]) -> None:
        await asyncio.gather(*(self._recover_one(partition) for partition in partitions))
        log.info("partitions recovered", partitions=[partition.number for partition in partitions])
        self.recovered.set()

    async def _recover_one(self, partition: Partition) -> None:
        position = await self._recovery.recover(partition)
        self._committed[partition.number] = position
        pair = self._pair(partition.number)
        with suppress(IllegalStateError):  # taken away meanwhile: the next assignment is on its way
            self._consumer.seek(pair, position)
            self._consumer.resume(pair)

    async def _stop_recovering(self) -> None:
        if self._recovering is not None:
            self._recovering.cancel()
            await asyncio.wait({self._recovering})

    async def _take(self, number: int, records: list[Any], read_for: Watermark | None) -> None:
        """Take records that were read for a watermark. After a rebalance there is another one.

        Then they are read again: recovery seeks.
        """
        partition = self._partitions.get(number)
        for record in records:
            if partition is None or not partition.ready or partition.watermark is not read_for:
                return
            if record.offset < partition.watermark.position:
                continue
            if partition.full:
                self._hold(partition, record.offset)
                return
            await self._handle(partition, record)

    def _hold(self, partition: Partition, offset: int) -> None:
        """Read no further until calls have ended."""
        with suppress(IllegalStateError):
            self._consumer.seek(self._pair(partition.number), offset)
            self._consumer.pause(self._pair(partition.number))
            partition.paused = True

    async def _handle(self, partition: Partition, record: Any) -> None:
        try:
            message = decode_call(record.value)
            check_place(message, partition.number)
            if isinstance(message, CallRun):
                call = Call.of(message, partition.number, record.offset, len(record.value))
        except (UndecodableRecord, UnknownMessage, Misplaced) as error:
            watermark = partition.watermark
            await self._letters.send(record, "decode", error)
            if partition.watermark is watermark:  # else it is read again
                partition.pass_over(record.offset)
            return
        if isinstance(message, CallCancel):
            self._dispatcher.cancel_call(partition, message, record.offset)
        else:
            self._dispatcher.run_call(partition, call)

    async def _commit_regularly(self) -> None:
        while True:
            await asyncio.sleep(COMMIT_S)
            self._dispatcher.answer_overdue()
            await self._commit()

    async def _commit(self, timeout_s: float | None = None) -> None:
        moved = {
            partition.number: partition.watermark.committable
            for partition in self._partitions.owned()
            if partition.watermark.committable > self._committed.get(partition.number, 0)
        }
        if not moved:
            return
        crash_point("bridge.before_commit")
        try:
            async with asyncio.timeout(timeout_s):
                await self._consumer.commit({self._pair(n): offset for n, offset in moved.items()})
        except (KafkaError, TimeoutError) as error:
            # Answered calls are read again at worst, and passed over.
            log.warning("offsets not committed", error=str(error))
            return
        self._committed.update(moved)
        crash_point("bridge.after_commit")

    async def _finish(self) -> None:
        """Safe calls are left to whoever reads their records next; unsafe ones that run are awaited."""
        await self._stop_recovering()
        for partition in self._partitions.all():
            self._dispatcher.let_go(partition)
        deadline_s = asyncio.get_running_loop().time() + STOP_GRACE_S
        while any(p.calls for p in self._partitions.all()) and asyncio.get_running_loop().time() < deadline_s:
            await asyncio.sleep(0.02)
        await self._commit(LAST_COMMIT_S)

    def _lag(self, partition: Partition) -> int:
        try:
            end = self._consumer.highwater(self._pair(partition.number))
        except IllegalStateError:
            return 0
        return max(0, (end or 0) - partition.watermark.committable)

    def _pair(self, number: int) -> TopicPartition:
        return TopicPartition(self._topic, number)


def check_place(message: CallRecord, number: int) -> None:
    """A session's calls lie in its partition, beside its claims.

    Raises:
        Misplaced: this one does not.
    """
    right = partition_for(session_key(message.tenant, message.session_id))
    if right != number:
        raise Misplaced(f"the call belongs to partition {right}, not {number}; use the default partitioner")
